package offers

import "time"

// Setting says when a member finds out by itself that what it proposed has committed, and may offer it to all voters. The
// zero value is auto.
type Setting string

// The settings.
const (
	Auto   Setting = "auto" // while the leader is so far away that it pays
	Always Setting = "always"
	Never  Setting = "never"
)

// farAway is the round trip to the leader from which on counting pays: it saves the leader's round trip to the others, and
// costs each of them a small message for each of theirs. Within a rack those cost more than they save.
const farAway = time.Millisecond

// Pays reports whether to count with a leader so far away; zero means that nobody knows yet.
func (s Setting) Pays(distance time.Duration) bool {
	switch s {
	case Always:
		return true
	case Never:
		return false
	}
	return distance >= farAway
}
