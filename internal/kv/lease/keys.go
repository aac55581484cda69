package lease

// keySet is the keys of one lease, as a list that can be walked in parts. Most leases have a key or two, which need no map.
type keySet struct {
	few   []string  // if many is nil
	many  *manyKeys // from shortKeys on
	bytes int64     // of all keys
}

// manyKeys are the keys of a lease that has, or had, more than a few.
type manyKeys struct {
	list  pages[string]
	slots map[string]int // places in list
}

const shortKeys = 8

func (s *keySet) length() int {
	if s.many != nil {
		return s.many.list.length()
	}
	return len(s.few)
}

func (s *keySet) at(i int) *string {
	if s.many != nil {
		return s.many.list.at(i)
	}
	return &s.few[i]
}

func (s *keySet) find(key string) int {
	if s.many != nil {
		if at, ok := s.many.slots[key]; ok {
			return at
		}
		return -1
	}
	for i := range s.few {
		if s.few[i] == key {
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
	s.bytes += int64(len(key))
	if s.many == nil && len(s.few) == shortKeys {
		s.many = &manyKeys{slots: make(map[string]int, 2*shortKeys)}
		for _, one := range s.few {
			s.many.add(one)
		}
		s.few = nil
	}
	if s.many != nil {
		s.many.add(key)
		return true
	}
	s.few = append(s.few, key)
	return true
}

func (m *manyKeys) add(key string) {
	m.slots[key] = m.list.length()
	m.list.push(key)
}

// remove puts the last key in the place of the one that goes. It returns false if key was not there.
func (s *keySet) remove(key string) bool {
	at := s.find(key)
	if at < 0 {
		return false
	}
	s.bytes -= int64(len(key))
	last := s.length() - 1
	*s.at(at) = *s.at(last)
	if s.many != nil {
		s.many.slots[*s.at(at)] = at
		delete(s.many.slots, key)
		s.many.list.pop()
		return true
	}
	s.few[last] = ""
	s.few = s.few[:last]
	return true
}
