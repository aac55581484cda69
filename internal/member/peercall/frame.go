package peercall

import (
	"encoding/binary"
	"encoding/json"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
)

// The bodies of a question and of its answer:
//
//	question   [index uvarint][term uvarint][stage byte]   of the configuration, if the method is fenced
//	           the question as its codec writes it
//	answer     [0]     the answer as its codec writes it
//	           [code]  an error of the table, and what its codec writes about it

// Codec is how one type is encoded.
type Codec[T any] struct {
	Append func(dst []byte, value T) ([]byte, error)
	Decode func(src []byte) (T, error)
}

// JSON encodes what is rare and has many fields.
func JSON[T any]() Codec[T] {
	return Codec[T]{
		Append: func(dst []byte, value T) ([]byte, error) {
			text, err := json.Marshal(value)
			return append(dst, text...), err
		},
		Decode: func(src []byte) (value T, err error) {
			return value, json.Unmarshal(src, &value)
		},
	}
}

// Bytes is a value that has its own encoding. It fails to decode more than most bytes.
func Bytes(most int) Codec[[]byte] {
	return Codec[[]byte]{
		Append: func(dst []byte, value []byte) ([]byte, error) { return append(dst, value...), nil },
		Decode: func(src []byte) ([]byte, error) {
			if len(src) > most {
				return nil, errSurplus
			}
			return src, nil
		},
	}
}

// Nothing is a question, or an answer, without contents.
type Nothing = struct{}

// Empty encodes it.
func Empty() Codec[Nothing] {
	return Codec[Nothing]{
		Append: func(dst []byte, _ Nothing) ([]byte, error) { return dst, nil },
		Decode: func([]byte) (Nothing, error) { return Nothing{}, nil },
	}
}

// Numbers encodes a value as a list of numbers. It fails to decode what has fewer than least or more than most: a body in
// another encoding must not pass for a list of numbers, and a byte of it becomes eight in memory.
func Numbers[T any](least, most int, split func(T) []uint64, join func([]uint64) T) Codec[T] {
	return Codec[T]{
		Append: func(dst []byte, value T) ([]byte, error) {
			for _, n := range split(value) {
				dst = binary.AppendUvarint(dst, n)
			}
			return dst, nil
		},
		Decode: func(src []byte) (value T, err error) {
			list := make([]uint64, 0, least)
			for len(src) > 0 {
				n, read := binary.Uvarint(src)
				if read <= 0 {
					return value, errCut
				}
				if len(list) == most {
					return value, errSurplus
				}
				list, src = append(list, n), src[read:]
			}
			if len(list) < least {
				return value, errCut
			}
			return join(list), nil
		},
	}
}

var (
	errCut     = errors.New("peercall: a question or an answer is cut off")
	errSurplus = errors.New("peercall: a question or an answer has more than it may; do the members run one version?")
)

// malformed refuses what cannot be decoded: asking again changes nothing.
func malformed(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }

func appendFence(dst []byte, id consensus.ConfigID) []byte {
	dst = binary.AppendUvarint(dst, uint64(id.Index))
	dst = binary.AppendUvarint(dst, uint64(id.Term))
	return append(dst, id.Stage)
}

func decodeFence(src []byte) (id consensus.ConfigID, rest []byte, err error) {
	index, n := binary.Uvarint(src)
	if n <= 0 {
		return id, nil, errCut
	}
	term, m := binary.Uvarint(src[n:])
	if m <= 0 || len(src) == n+m {
		return id, nil, errCut
	}
	id = consensus.ConfigID{Index: consensus.Index(index), Term: consensus.Term(term), Stage: src[n+m]}
	return id, src[n+m+1:], nil
}
