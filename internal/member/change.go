package member

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// changer changes the configuration through the log, wherever the leader is.
type changer struct {
	confirm   func(ctx context.Context, request *consensus.ChangeRequest) error // checks its peer URLs
	entry     func(ctx context.Context, kind consensus.EntryKind, payload []byte) (kv.Result, error)
	readIndex func(ctx context.Context) error
	config    func() consensus.Config // the applied one
	changed   func() <-chan struct{}  // closed at the next one
	patience  time.Duration           // with an earlier change that is pending, and with a new leader
	poll      time.Duration
	stopping  context.Context
}

// change returns once a change is done: see Member.ChangeConfig.
func (c *changer) change(ctx context.Context, request *consensus.ChangeRequest) (consensus.Config, error) {
	request, err := c.confirmed(ctx, request)
	if err != nil {
		return consensus.Config{}, err
	}
	for {
		changed := c.changed()
		config := c.config()
		switch {
		case !abortable(request):
			return config, nil
		case !config.IsJoint() && !fulfils(&config, request.Steps):
			return config, membership.ErrChangeAborted
		case !config.IsJoint():
			return config, nil
		case request.Protocol != consensus.ProtocolJoint:
			return c.decided(ctx, request.Steps)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return config, ctx.Err()
		case <-c.stopping.Done():
			return config, ErrStopped
		}
	}
}

// confirmTries is how often the peer URLs of a change are checked if the configuration changes meanwhile.
const confirmTries = 5

// confirmed checks the peer URLs of a change, proposes it, and returns the change as it was proposed. If another configuration
// is in force by then, it tries again, unless the caller expects a certain configuration.
func (c *changer) confirmed(ctx context.Context, asked *consensus.ChangeRequest) (*consensus.ChangeRequest, error) {
	waits := asked.Expected == consensus.ConfigID{}
	for try := 1; ; try++ {
		request := *asked
		request.Steps = slices.Clone(asked.Steps)
		if err := c.confirm(ctx, &request); err != nil {
			return nil, err
		}
		err := c.propose(ctx, &request, waits)
		var refused *membership.RefusedError
		if waits && try < confirmTries && errors.As(err, &refused) && refused.Reason == consensus.ReasonStaleConfig {
			continue
		}
		return &request, err
	}
}

// decided returns the configuration once it is certain whether the joint entry that is applied here was aborted. An abort comes
// before the entry has committed, but this member may learn of the commit first; the present leader has both or neither.
func (c *changer) decided(ctx context.Context, steps []consensus.ChangeStep) (consensus.Config, error) {
	if err := c.readIndex(ctx); err != nil {
		return consensus.Config{}, err
	}
	config := c.config()
	if !fulfils(&config, steps) {
		return config, membership.ErrChangeAborted
	}
	return config, nil
}

// propose proposes a change. With waits, it tries again for an election timeout at most, while an earlier change is pending, or
// while a new leader has committed no entry or does not know yet how much of the log the others hold.
func (c *changer) propose(ctx context.Context, request *consensus.ChangeRequest, waits bool) error {
	payload := consensus.AppendChangeRequest(nil, request)
	patience := time.After(c.patience)
	for {
		_, err := c.entry(ctx, consensus.EntryConfig, slices.Clone(payload))
		var refused *membership.RefusedError
		if !errors.As(err, &refused) || !waits ||
			(refused.Reason != consensus.ReasonChangePending && refused.Reason != consensus.ReasonQuorumLost) {
			return err
		}
		select {
		case <-time.After(c.poll):
		case <-patience:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// abortable reports whether the change may have used a joint configuration, which another request can abort.
func abortable(request *consensus.ChangeRequest) bool {
	switch request.Protocol {
	case consensus.ProtocolJoint, consensus.ProtocolJointEarly:
		return !request.Abort
	case consensus.ProtocolAuto:
		return len(request.Steps) > 1
	}
	return false
}

// fulfils reports whether config is the result of steps, or will be once its next stage is applied.
func fulfils(config *consensus.Config, steps []consensus.ChangeStep) bool {
	for i := range steps {
		id := steps[i].Member.ID
		votes := slices.Contains(config.Voters, id)
		learns := slices.Contains(config.Learners, id) || slices.Contains(config.LearnersNext, id)
		switch steps[i].Kind {
		case consensus.ChangeAddVoter, consensus.ChangePromote:
			if !votes {
				return false
			}
		case consensus.ChangeAddLearner:
			if !votes && !learns { // the learner may have been promoted since
				return false
			}
		case consensus.ChangeDemote:
			if votes || !learns {
				return false
			}
		case consensus.ChangeRemove:
			if votes || learns {
				return false
			}
		}
	}
	return true
}
