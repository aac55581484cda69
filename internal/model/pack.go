package model

import "unsafe"

// A state is a plain value: its bytes are its identity. The search keeps its frontier as bytes without the runs of zeros, a
// tenth of the size. Only this file looks at a state's bytes.

func bytesOf(s *State) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Sizeof(*s)) }

// Pack appends the packed bytes of a state to out.
func Pack(s *State, out []byte) []byte {
	in := bytesOf(s)
	for i := 0; i < len(in); {
		if in[i] != 0 {
			out = append(out, in[i])
			i++
			continue
		}
		n := 0
		for i < len(in) && in[i] == 0 && n < 255 {
			i++
			n++
		}
		out = append(out, 0, byte(n))
	}
	return out
}

func Unpack(b []byte, s *State) {
	*s = State{}
	out := bytesOf(s)
	for i, k := 0, 0; i < len(b); i++ {
		if b[i] == 0 {
			i++
			k += int(b[i])
			continue
		}
		out[k] = b[i]
		k++
	}
}

func hash(s *State) uint64 {
	in := bytesOf(s)
	h := uint64(0x9e3779b97f4a7c15)
	for i := 0; i < len(in); i++ {
		if in[i] == 0 {
			continue
		}
		h ^= (uint64(in[i])<<32 | uint64(i)) * 0xff51afd7ed558ccd
		h = (h<<29 | h>>35) * 0xc4ceb9fe1a85ec53
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}
