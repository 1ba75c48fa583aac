// Diff: what changed from one session to another, and which changes are within
// the sampling error. Values are per second of recording. The variance of a value
// is the sum of the squares of its samples' weights.

// A change must exceed this number of standard errors, as in tools/page/diff.h.
const SURE = 3.5;

function changeOf(tree, plain, source, amount) {
  const {rows, node} = source;
  const sum = (values) => {
    const self = new Float64Array(source.trie.n);
    for (let i = 0; i < rows.n; i++) self[node[i]] += values[i];
    const {total} = tree.sums(self);
    return {...plain.sums(self), total};
  };
  const a = sum(rows.other);
  const b = sum(rows.weight);
  const va = sum(rows.otherVariance);
  const vb = sum(rows.weightVariance);
  const verdict = (before, after, variance) => {
    const d = after - before;
    if (Math.abs(d) <= SURE * Math.sqrt(variance)) return 0;
    return d / Math.max(before, after);
  };
  const byNode = Float64Array.from(a.total, (x, i) =>
    verdict(x, b.total[i], va.total[i] + vb.total[i]));
  const byFrame = Float64Array.from(a.totalOf, (x, f) =>
    verdict(x, b.totalOf[f], va.totalOf[f] + vb.totalOf[f]));
  const selfByFrame = Float64Array.from(a.selfOf, (x, f) =>
    verdict(x, b.selfOf[f], va.selfOf[f] + vb.selfOf[f]));
  const text = (d) => (d > 0 ? '+' : d < 0 ? '−' : '') + amount(Math.abs(d));
  const about = (node, f) => {
    const [x, y, v] = node >= 0
      ? [a.total[node], b.total[node], va.total[node] + vb.total[node]]
      : [a.totalOf[f], b.totalOf[f], va.totalOf[f] + vb.totalOf[f]];
    const noise = Math.abs(y - x) <= SURE * Math.sqrt(v);
    return [`${amount(x)} before, ${amount(y)} after`,
      `${text(y - x)} ± ${amount(SURE * Math.sqrt(v))}` +
      (noise ? ': within the sampling error' : '')];
  };
  const delta = (before, after, v) => ({
    value: (r) => Math.abs(after[r.f] - before[r.f]),
    text: (r) => text(after[r.f] - before[r.f]),
    tone: (r) => verdict(before[r.f], after[r.f], v(r.f)) === 0 ? 'noise'
      : after[r.f] > before[r.f] ? 'more' : 'less',
  });
  return {
    byNode, byFrame, selfByFrame, about,
    // Of a function: own before and after, total before and after.
    sums: (f) => [a.selfOf[f], b.selfOf[f], a.totalOf[f], b.totalOf[f]],
    seen: (f) => a.totalOf[f] > 0 || b.totalOf[f] > 0,
    columns: () => [
      {key: 'dself', name: 'Δ self', numeric: true,
        ...delta(a.selfOf, b.selfOf, (f) => va.selfOf[f] + vb.selfOf[f])},
      {key: 'dtotal', name: 'Δ total', numeric: true,
        ...delta(a.totalOf, b.totalOf, (f) => va.totalOf[f] + vb.totalOf[f])},
      {key: 'error', name: '±', numeric: true,
        about: 'Sampling error of the change of the total',
        value: (r) => va.totalOf[r.f] + vb.totalOf[r.f],
        text: (r) => amount(SURE *
          Math.sqrt(va.totalOf[r.f] + vb.totalOf[r.f]))},
    ],
  };
}
