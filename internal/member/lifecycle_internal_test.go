package member

import (
	"context"
	"errors"
	"testing"
)

// Ensure that the first goroutine that fails ends the others and is named in the error, and that later failures do not count.
func TestLifecycle_run(t *testing.T) {
	var l lifecycle
	l.init()
	wrong := errors.New("wrong")
	l.run("other", func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("too late")
	})
	l.run("first", func(context.Context) error { return wrong })
	<-l.failed
	l.end()
	if err := l.err(); !errors.Is(err, wrong) || err.Error() != "first: wrong" {
		t.Errorf("got %v", err)
	}
}

// Ensure that a member that is stopped has not failed.
func TestLifecycle_end(t *testing.T) {
	var l lifecycle
	l.init()
	l.run("one", func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("interrupted")
	})
	l.end()
	if err := l.err(); err != nil {
		t.Errorf("got %v", err)
	}
}
