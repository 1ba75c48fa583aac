"""dns.py PORT N: asks the name server at 127.0.0.1:PORT for N addresses, one
after another, and prints how many answers are addresses of 10.0.0.0/16. A few
names repeat. Each question has two seconds and three tries."""
import socket
import struct
import sys

port, questions = int(sys.argv[1]), int(sys.argv[2])
good = 0
for number in range(questions):
    labels = (b"n%d" % (number % 17), b"test")
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    question = struct.pack(">HHHHHH", number, 0x100, 1, 0, 0, 0)
    question += name + struct.pack(">HH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(2)
        for _ in range(3):
            try:
                asker.sendto(question, ("127.0.0.1", port))
                answer = asker.recv(4096)
            except OSError:  # Nobody is there, or the time is over.
                continue
            good += answer[6:8] == b"\0\1" and b"\4\x0a\0" in answer[-40:]
            break
print(good)
