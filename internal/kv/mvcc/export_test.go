package mvcc

// KeyCount returns the number of keys that exist at the published revision.
func (s *Store) KeyCount() int64 { return s.state.Load().numbers.keys }
