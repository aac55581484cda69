package lease

// keySet is the keys of one lease, in a list that can be walked in parts. Most leases have a key or two, and then
// there is no map.
type keySet struct {
	list  []string
	slots map[string]int // places in list; nil while it is short
}

const shortKeys = 8

func (s *keySet) find(key string) int {
	if s.slots != nil {
		if at, ok := s.slots[key]; ok {
			return at
		}
		return -1
	}
	for i := range s.list {
		if s.list[i] == key {
			return i
		}
	}
	return -1
}

// add returns false if key was there.
func (s *keySet) add(key string) bool {
	if s.find(key) >= 0 {
		return false
	}
	s.list = append(s.list, key)
	switch {
	case s.slots != nil:
		s.slots[key] = len(s.list) - 1
	case len(s.list) > shortKeys:
		s.slots = make(map[string]int, 2*shortKeys)
		for i := range s.list {
			s.slots[s.list[i]] = i
		}
	}
	return true
}

// remove puts the last key in the place of the one that goes. It returns false if key was not there.
func (s *keySet) remove(key string) bool {
	at := s.find(key)
	if at < 0 {
		return false
	}
	last := len(s.list) - 1
	if s.slots != nil {
		s.slots[s.list[last]] = at
		delete(s.slots, key)
	}
	s.list[at] = s.list[last]
	s.list[last] = ""
	s.list = s.list[:last]
	return true
}
