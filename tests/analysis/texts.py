def sentence(letter, length):
    return b" ".join(b"%s%d" % (letter, i) for i in range(length))
