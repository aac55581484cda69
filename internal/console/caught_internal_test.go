package console

import (
	"context"
	"log/slog"
	"testing"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/console/page"
)

// broken is a member whose invariants are broken.
type broken struct{ grpc.ClientConnInterface }

func (broken) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	panic("invariant broken")
}

// Ensure that a fault of a page is caught, and that one of the member, which a page has called, is not.
func TestConsole_caught(t *testing.T) {
	c := &Console{options: Options{Logger: slog.New(slog.DiscardHandler)}}
	run := func(do func()) (escaped any, err error) {
		defer func() { escaped = recover() }()
		func() {
			defer func() { err = c.caught(recover(), &look{page: &page.Page{}}, &page.Section{}) }()
			do()
		}()
		return escaped, err
	}
	if escaped, err := run(func() { panic("a page") }); escaped != nil || err == nil {
		t.Errorf("a fault of a page: %v, %v", escaped, err)
	}
	call := func() {
		_ = readOnly{broken{}}.Invoke(t.Context(), "/etcdserverpb.KV/Range", nil, nil)
	}
	if escaped, _ := run(call); escaped == nil {
		t.Error("a fault of the member was caught")
	}
}
