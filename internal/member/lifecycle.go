package member

import (
	"context"
	"fmt"
	"sync"
)

// lifecycle is the goroutines of a member and their common end: the member stops on request, or when one of its goroutines
// fails.
type lifecycle struct {
	stopping context.Context
	stop     context.CancelFunc
	wg       sync.WaitGroup

	mu      sync.Mutex
	failure error
	failed  chan struct{} // closed after a failure
}

func (l *lifecycle) init() {
	l.failed = make(chan struct{})
	l.stopping, l.stop = context.WithCancel(context.Background())
}

// run runs f in a goroutine. The member stops if f returns an error.
func (l *lifecycle) run(name string, f func(ctx context.Context) error) {
	l.background(func() {
		if err := f(l.stopping); err != nil {
			l.fail(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// background runs f in a goroutine that Stop waits for.
func (l *lifecycle) background(f func()) {
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		f()
	}()
}

// fail stops the member for good. Only the first failure counts, and none while the member is being stopped.
func (l *lifecycle) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil || l.stopping.Err() != nil {
		return
	}
	l.failure = err
	close(l.failed)
	l.stop()
}

// end stops all goroutines and waits for them.
func (l *lifecycle) end() {
	l.stop()
	l.wg.Wait()
}

// err returns why the member stopped by itself.
func (l *lifecycle) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}
