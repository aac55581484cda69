package top

import "bytes"

const (
	// MaxPrefix is the most bytes of a key that are looked at for its prefix.
	MaxPrefix = 64
	// levels is how many slashes a prefix has at most.
	levels = 3
	// plainBytes is the prefix of a key without slashes.
	plainBytes = 8
)

// Prefix returns the part of a key by which it is counted: up to its third slash, or to its last one within the first 64 bytes.
// A key without slashes, beside one that it begins with, counts by 8 bytes more. The result shares the memory of the key.
func Prefix(key []byte) []byte {
	head := key[:min(len(key), MaxPrefix)]
	end := 0
	for range levels {
		i := bytes.IndexByte(head[end:], '/')
		if i < 0 {
			break
		}
		end += i + 1
	}
	if end <= 1 {
		end = min(end+plainBytes, len(head))
	}
	return head[:end]
}
