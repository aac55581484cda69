package answers

import "github.com/quorate/quorate/internal/kv"

// Small is the kv.Account of an answer that is given up if it is so large that it would have to be counted.
type Small struct {
	taken    int
	walked   int
	Exceeded bool // it was too large
}

// Take implements kv.Account. The error is kv.ErrAnswerTooLarge.
func (s *Small) Take(bytes int) error {
	if s.taken += bytes; copies*s.taken > freeBytes {
		s.Exceeded = true
		return kv.ErrAnswerTooLarge
	}
	return nil
}

// Walk implements kv.Account. The error is kv.ErrAnswerTooLarge.
func (s *Small) Walk(bytes int) error {
	if s.walked += bytes; s.walked > freeBytes {
		s.Exceeded = true
		return kv.ErrAnswerTooLarge
	}
	return nil
}

// Release implements kv.Account.
func (*Small) Release() {}
