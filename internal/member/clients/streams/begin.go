package streams

import (
	"context"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
)

// Begin begins the stream of a client that shows a key, unless there are too many or it has not logged in, which may wait. Its
// driver must close it.
func (all *Streams) Begin(ctx context.Context, key []byte, from admission.Caller, driver Driver) (*Stream, error) {
	owner, err := clients.OwnerOf(key, all.options.Faults.Owners)
	if err != nil {
		return nil, errNoClient
	}
	if err := all.options.Requests.Permit(ctx); err != nil {
		return nil, all.options.Requests.Wire(err)
	}
	leave, err := all.register.enter(owner.ID, from)
	if err != nil {
		return nil, err
	}
	s := all.newStream(owner, from.Host, driver)
	s.leave = leave
	return s, nil
}
