package watch

// Review asks of each watcher whether its client may still see the keys, and ends those of which it may not. refuse returns
// why, and how many looks at further watchers the question cost, for the time that the hub is held. The answer that ends a
// watcher comes behind the events that it has had; those must not be sent any more.
func (s *Stream) Review(refuse func(key, end []byte) (cost int, err error)) (ended map[int64]bool) {
	at := -1
	s.hub.inHolds(func() (looked int, more bool) {
		if at < 0 {
			at = len(s.watchers)
		}
		at = min(at, len(s.watchers)) // who was removed meanwhile was replaced by the last
		for ; looked < watchersPerHold; looked++ {
			if at == 0 {
				return looked, false
			}
			at--
			w := s.watchers[at]
			cost, why := refuse(w.party.pair())
			looked += cost
			if why == nil {
				continue
			}
			if ended == nil {
				ended = map[int64]bool{}
			}
			ended[w.id] = true
			s.remove(w)
			s.enqueue(Response{WatchID: w.id, Revision: s.hub.rev, Canceled: true, Err: why})
		}
		return looked, true
	})
	return ended
}

// pair is what a watcher listens to as the pair that a client would ask for.
func (in *interest) pair() (key, end []byte) {
	switch {
	case in.single:
		return []byte(in.start), nil
	case in.end == "":
		return []byte(in.start), []byte{0}
	}
	return []byte(in.start), []byte(in.end)
}
