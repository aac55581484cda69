package autopilot

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// repairPatience bounds one attempt to do something about the voters. It is shorter than the pause after which a leader forgets
// what it has seen.
const repairPatience = 5 * time.Second

// Repair looks after the voters while its member leads: it says what is wrong and, if its policy allows that, starts the job
// that cures it. Its memory is of one term: the next leader watches anew. Look belongs to one goroutine, Text to all.
type Repair struct {
	policy   membership.Policy
	cluster  Cluster
	requests *Requests
	logger   *slog.Logger
	text     atomic.Pointer[string]

	term   consensus.Term
	memory membership.HealthHistory
	logged map[string]bool // since all was well
}

// NewRepair returns that of a member.
func NewRepair(policy membership.Policy, cluster Cluster, requests *Requests, logger *slog.Logger) *Repair {
	return &Repair{policy: policy, cluster: cluster, requests: requests, logger: logger}
}

// Text says in a sentence what is wrong with the voters, and what would cure it or why nothing is done. It is empty if all is
// well, if the policy is off, and at members that do not lead.
func (r *Repair) Text() string {
	if text := r.text.Load(); text != nil {
		return *text
	}
	return ""
}

// Look judges the voters as they are now, and acts.
func (r *Repair) Look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, repairPatience)
	defer cancel()
	view, term, err := r.cluster.View(ctx)
	if err != nil || term != r.term {
		r.term, r.memory, r.logged = term, membership.HealthHistory{}, nil
	}
	if err != nil { // its member does not lead
		r.text.Store(nil)
		return
	}
	advice := membership.Care(&r.policy, &view, Jobs(r.cluster.Jobs()), &r.memory)
	text := advice.String()
	r.text.Store(&text)
	r.log(text)
	if r.policy.Mode != membership.ModeAuto {
		return
	}
	switch {
	case advice.Cancel != 0:
		_, err = r.requests.Cancel(ctx, advice.Cancel)
	case advice.Spec != nil:
		err = r.act(ctx)
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		r.log("nothing could be done: " + err.Error())
	}
}

// log writes what is new.
func (r *Repair) log(text string) {
	switch {
	case text == "":
		r.logged = nil
		return
	case r.logged[text]:
		return
	case r.logged == nil:
		r.logged = map[string]bool{}
	}
	r.logged[text] = true
	r.logger.Warn("automatic repair", "message", text)
}

// act starts what is due once everything that was acknowledged is taken into account: another leader may have done it.
func (r *Repair) act(ctx context.Context) error {
	view, _, err := r.cluster.FreshView(ctx)
	if err != nil {
		return err
	}
	advice := membership.Care(&r.policy, &view, Jobs(r.cluster.Jobs()), &r.memory)
	if advice.Spec == nil {
		return nil
	}
	job, err := r.requests.Start(ctx, advice.Job, advice.Spec)
	if err == nil {
		r.logger.Info("automatic repair started a job", "job", job.ID.String())
	}
	return err
}
