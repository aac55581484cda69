package h2

// vectorBytes is from which size on a part of an answer is written from where it is, instead of being copied between frames.
const vectorBytes = 2 << 10

// within is a part of an answer, or a piece of one, that is written after the first bytes of what surrounds it. Its Release is
// nil if more of the part follows.
type within struct {
	at int
	Part
}

// vectorsOf puts bytes and what is within them in line, but for the first begin bytes.
func vectorsOf(bytes []byte, all []within, begin int) [][]byte {
	vectors := make([][]byte, 0, 2*len(all)+1)
	add := func(p []byte) {
		skipped := min(begin, len(p))
		if begin -= skipped; skipped < len(p) {
			vectors = append(vectors, p[skipped:])
		}
	}
	at := 0
	for _, w := range all {
		add(bytes[at:w.at])
		add(w.Data)
		at = w.at
	}
	add(bytes[at:])
	return vectors
}
