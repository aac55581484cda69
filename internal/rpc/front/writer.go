package front

import "sync"

// answerWriter answers the prompt calls of some connections, as many at once as are done.
type answerWriter struct {
	mu     sync.Mutex
	done   []*Call
	signal chan struct{}
}

func (w *answerWriter) push(c *Call) {
	w.mu.Lock()
	w.done = append(w.done, c)
	first := len(w.done) == 1
	w.mu.Unlock()
	if first {
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
}

func (w *answerWriter) run(stop <-chan struct{}) {
	var spare []*Call
	for {
		select {
		case <-w.signal:
		case <-stop:
			return
		}
		w.mu.Lock()
		calls := w.done
		w.done = spare[:0]
		w.mu.Unlock()
		for _, c := range calls {
			c.Finish()
		}
		for _, c := range calls { // a connection that was flushed has nothing left
			c.stream.Flush()
		}
		clear(calls)
		spare = calls
	}
}
