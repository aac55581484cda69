package member

import (
	"context"

	"github.com/quorate/quorate/internal/member/moments"
)

// tellMoment notes what time it is, if that is due (package moments). The leader calls it now and then.
func (p *pilot) tellMoment(ctx context.Context) {
	machine := p.ports.config.stores.Latest()
	view := &moments.View{Self: p.ports.leader.Self(), Active: machine.ActiveLevel(), Revision: machine.Store().Revision(),
		Noted: machine.Moments()}
	now := p.clock.Now()
	command, due := p.teller.Look(view, now, now)
	if !due {
		return
	}
	attempt, cancel := context.WithTimeout(ctx, promotePatience)
	defer cancel()
	if _, err := p.ports.requests.command(attempt, &command); err != nil && ctx.Err() == nil {
		p.logger.Debug("could not note the time yet", "err", err)
	}
}
