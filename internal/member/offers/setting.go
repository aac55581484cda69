package offers

import "time"

// Setting says when a member infers by itself that its proposals have committed, and may offer them to all voters: the flag
// --fast-path. The zero value is auto.
type Setting string

// The settings.
const (
	Auto   Setting = "auto" // while the leader is so far away that it pays
	Always Setting = "always"
	Never  Setting = "never"
)

// farAway is the smallest round trip to the leader for which counting acknowledgements pays. Counting saves one message
// delay from the leader, and costs a small message from each voter for each acknowledgement. Within a rack it costs
// more than it saves.
const farAway = time.Millisecond

// Pays reports whether counting pays with a leader at this round trip; zero means that it is not measured yet.
func (s Setting) Pays(distance time.Duration) bool {
	switch s {
	case Always:
		return true
	case Never:
		return false
	}
	return distance >= farAway
}
