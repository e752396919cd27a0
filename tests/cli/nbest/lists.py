"""A list of hypotheses, its source and its reference."""

SOURCE = b"s2 s3 s4 s5\ns3 s4 s5\ns6 s2 s3 s4 s9\ns2\n"
REFERENCE = b"t2 t3 t4 t5\nt3 t4 t5 t6\nt6 t2 t3 t4\nt2\n"
LISTED = [  # sentence, hypothesis, segmentation, LM0; the best of them all knows every word
    (0, b"t2 x t4 t5", b"0=0 1-3=1-3", -1),
    (0, b"t2 t3 t4 t5", b"0-1=0-1 2-3=2-3", -2),
    (1, b"t3 x y t6", b"0-2=0-3", -1),
    (1, b"t3 t4 t5 t6", b"0=0 1-2=1-3", -1.5),
    (1, b"t3 t4 t5 x", b"0-1=0-1 2=2-3", -2),
    (2, b"t6 t2 t3 t4 x", b"0=0 1-4=1-4", -1),
    (2, b"t6 t2 t3 t4", b"0-3=0-2 4=3", -2),
    (3, b"\xe9", b"0=0", -1),
    (3, b"t2", b"0=0", -2),
]
NBEST = b"".join(b"%d ||| %b  ||| LM0= %g ||| %g ||| %b \n" % (i, text, lm, lm, spans) for i, text, spans, lm in LISTED)
WEIGHTS = b"[weight]\nLM0= 1\nWP0= 3\n"  # an unknown word costs more than any LM0 gains
