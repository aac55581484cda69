package member

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// ChangeConfig asks the leader, wherever it is, for a configuration change, and returns the configuration that was
// applied once the change is done by the rule of its protocol: joint waits for its second entry. It
// fails with a *membership.RefusedError, with a *membership.AddressError for peer URLs, and with ErrChangeAborted if somebody
// aborted a joint change.
func (m *Member) ChangeConfig(ctx context.Context, request consensus.ChangeRequest) (consensus.Config, error) {
	if err := m.addresses.Confirm(ctx, &request, membership.Lenient); err != nil {
		return consensus.Config{}, err
	}
	if err := m.proposeChange(ctx, &request); err != nil {
		return consensus.Config{}, err
	}
	for {
		changed := m.members.ConfigChanged()
		config := m.configNow()
		switch {
		case !abortable(&request):
			return config, nil
		case !config.IsJoint() && !fulfils(&config, request.Steps):
			return config, membership.ErrChangeAborted
		case !config.IsJoint():
			return config, nil
		case request.Protocol != consensus.ProtocolJoint:
			return m.decided(ctx, request.Steps)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return config, ctx.Err()
		case <-m.stopping.Done():
			return config, ErrStopped
		}
	}
}

// decided returns the configuration once it is sure that the joint entry applied here was not aborted. An abort comes
// before the entry has committed, but this member may learn of the commit first; whoever leads now has both or neither.
func (m *Member) decided(ctx context.Context, steps []consensus.ChangeStep) (consensus.Config, error) {
	if err := m.ReadIndex(ctx); err != nil {
		return consensus.Config{}, err
	}
	config := m.configNow()
	if !fulfils(&config, steps) {
		return config, membership.ErrChangeAborted
	}
	return config, nil
}

// proposeChange proposes a change. Unless the caller expects a certain configuration it waits, for an election timeout
// at most, while the change before is being finished, a new leader has committed nothing yet, or has not heard yet how
// much of the log the others hold.
func (m *Member) proposeChange(ctx context.Context, request *consensus.ChangeRequest) error {
	payload := consensus.AppendChangeRequest(nil, request)
	patience := time.After(m.electionTimeout())
	for {
		_, err := m.requests.propose(ctx, consensus.EntryConfig, slices.Clone(payload))
		var refused *membership.RefusedError
		if !errors.As(err, &refused) || request.Expected != (consensus.ConfigID{}) ||
			(refused.Reason != consensus.ReasonChangePending && refused.Reason != consensus.ReasonQuorumLost) {
			return err
		}
		select {
		case <-time.After(5 * m.options.TickInterval):
		case <-patience:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

func (m *Member) configNow() consensus.Config {
	config, _ := m.configApplied()
	return config
}

// abortable reports whether the change may have gone through a joint configuration that somebody can abort.
func abortable(request *consensus.ChangeRequest) bool {
	switch request.Protocol {
	case consensus.ProtocolJoint, consensus.ProtocolJointEarly:
		return !request.Abort
	case consensus.ProtocolAuto:
		return len(request.Steps) > 1
	}
	return false
}

// fulfils reports whether config is what steps ask for, or is becoming it.
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
			if !votes && !learns { // it may have been promoted since
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

func (m *Member) configApplied() (consensus.Config, consensus.ConfigID) {
	machine, release := m.Machine()
	defer release()
	return machine.Config()
}
