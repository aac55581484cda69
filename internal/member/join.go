package member

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// joinPoll is how often a member asks whether the job that adds a newcomer has come that far.
const joinPoll = time.Second

// Join asks whoever listens at a peer URL to let the caller, who has no identity yet, be a member. It asks which cluster that
// is first: nobody joins a cluster that it can not name.
func Join(ctx context.Context, o transport.Options, url string, r autopilot.JoinRequest) (autopilot.JoinAnswer, error) {
	body, err := json.Marshal(question[autopilot.JoinRequest]{Asked: r})
	if err != nil {
		return autopilot.JoinAnswer{}, err
	}
	if o.Cluster == 0 {
		d, err := Describe(ctx, o, url)
		if err != nil {
			return autopilot.JoinAnswer{}, err
		}
		o.Cluster = d.Cluster
	}
	raw, err := transport.CallURL(ctx, o, url, methodJoin, body)
	if err != nil {
		return autopilot.JoinAnswer{}, fromStatus(err)
	}
	return openReply[autopilot.JoinAnswer](raw)
}

// Join makes the caller a member-to-be and tells it who it is, once it is in the configuration: it may be started then.
// Asked again with the same URLs, it gives the same answer until the member has started. A newcomer enters as a learner,
// and votes once it has caught up, unless it is to stay one; one that replaces a member is added by a job.
func (m *Member) Join(ctx context.Context, r autopilot.JoinRequest) (autopilot.JoinAnswer, error) {
	r.PeerURLs = slices.Sorted(slices.Values(r.PeerURLs))
	if err := r.Validate(); err != nil {
		return autopilot.JoinAnswer{}, err
	}
	q := autopilot.JoinQuestion{JoinRequest: r}
	for {
		config, jobs := m.ConfigChanged(), m.JobsChanged()
		step, err := atLeader(ctx, m, methodJoinStep, q, m.joinHere)
		if err != nil || step.Ready {
			return step.JoinAnswer, err
		}
		q.Job = step.Job
		poll := time.NewTimer(joinPoll)
		select {
		case <-config:
		case <-jobs:
		case <-poll.C:
		case <-ctx.Done():
			return autopilot.JoinAnswer{}, ctx.Err()
		case <-m.stopping.Done():
			return autopilot.JoinAnswer{}, ErrStopped
		}
		poll.Stop()
	}
}

func (m *Member) joinHere(ctx context.Context, q autopilot.JoinQuestion) (autopilot.JoinStep, error) {
	step, err := m.requests.Join(ctx, q)
	step.Cluster, step.Epoch = m.Cluster(), m.data.Identity.Epoch
	return step, err
}
