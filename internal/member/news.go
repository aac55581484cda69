package member

import "sync"

// news wakes everybody who waits for the next of something. The zero value is ready.
type news struct {
	mu     sync.Mutex
	signal chan struct{}
}

// next returns a channel that is closed by the next tell.
func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.signal == nil {
		n.signal = make(chan struct{})
	}
	return n.signal
}

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.signal != nil {
		close(n.signal)
		n.signal = nil
	}
}
