package member

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// ChangeConfig asks the leader, wherever it is, for a configuration change, and returns the configuration that was
// applied once the change is done by the rule of its protocol: joint waits for its second entry. Refusals are
// *RefusedError; a joint change that somebody aborted is ErrChangeAborted.
func (m *Member) ChangeConfig(ctx context.Context, request consensus.ChangeRequest) (consensus.Config, error) {
	if err := m.proposeChange(ctx, &request); err != nil {
		return consensus.Config{}, err
	}
	for {
		changed := m.ConfigChanged()
		config, joint := m.configNow()
		if !joint || request.Protocol != consensus.ProtocolJoint {
			if !request.Abort && !fulfils(&config, request.Steps) && request.Protocol == consensus.ProtocolJoint {
				return config, ErrChangeAborted
			}
			return config, nil
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

// proposeChange proposes a change. Unless the caller expects a certain configuration it waits, for an election timeout
// at most, while the change before is being finished, or a new leader has committed nothing yet.
func (m *Member) proposeChange(ctx context.Context, request *consensus.ChangeRequest) error {
	payload := consensus.AppendChangeRequest(nil, request)
	patience := time.After(m.electionTimeout())
	for {
		_, err := m.propose(ctx, consensus.EntryConfig, slices.Clone(payload), true)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Reason != consensus.ReasonChangePending ||
			request.Expected != (consensus.ConfigID{}) {
			return err
		}
		select {
		case <-m.options.tickAfter():
		case <-patience:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

func (m *Member) configNow() (config consensus.Config, joint bool) {
	machine, release := m.Machine()
	defer release()
	config, _ = machine.Config()
	return config, config.IsJoint()
}

// fulfils reports whether config is what steps ask for.
func fulfils(config *consensus.Config, steps []consensus.ChangeStep) bool {
	for i := range steps {
		id := steps[i].Member.ID
		switch steps[i].Kind {
		case consensus.ChangeAddVoter, consensus.ChangePromote:
			if !slices.Contains(config.Voters, id) {
				return false
			}
		case consensus.ChangeAddLearner, consensus.ChangeDemote:
			if !config.IsLearner(id) {
				return false
			}
		case consensus.ChangeRemove:
			if config.Contains(id) {
				return false
			}
		}
	}
	return true
}

// ConfigChanged is closed when the next configuration entry, or one that settles a configuration, has been applied here.
func (m *Member) ConfigChanged() <-chan struct{} { return m.configNews.next() }

// noteConfig counts changes and wakes those who wait for ConfigChanged, once entries are applied.
func (m *Member) noteConfig(entries []consensus.Entry) {
	m.changes.applied(entries)
	for i := range entries {
		e := &entries[i]
		if e.Kind == consensus.EntryConfig || (e.Kind == consensus.EntryNoop && len(e.Payload) > 0) {
			m.noteRemoval()
			m.configNews.tell()
			return
		}
	}
}
