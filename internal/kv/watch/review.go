package watch

// Review asks for each watcher whether its client may still see the keys, and ends the watchers for which it may not. refuse
// returns the reason, and the cost of the question, as a number of watchers visited while the hub is held. The answer that ends
// a watcher is queued behind its events; the caller must not send those any more.
func (s *Stream) Review(refuse func(key, end []byte) (cost int, err error)) (ended map[int64]bool) {
	at := -1
	s.hub.inHolds(func() (looked int, more bool) {
		if at < 0 {
			at = len(s.watchers)
		}
		at = min(at, len(s.watchers)) // the last one took the place of a removed watcher
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

// pair returns the range of a watcher as a client would request it.
func (in *interest) pair() (key, end []byte) {
	switch {
	case in.single:
		return []byte(in.start), nil
	case in.end == "":
		return []byte(in.start), []byte{0}
	}
	return []byte(in.start), []byte(in.end)
}
