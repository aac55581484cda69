package changes

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// oneView is one job with all that is said of it.
type oneView struct {
	jobView
	Fault                         string // there is no such job
	Still                         string
	CreatedMs, StartedMs, EndedAt int64
	Began, Final, Expected        string // configurations
	Force, JoinWithin             string
	After                         []string // jobs that it was planned behind
	Members                       []namedView
	Replaces, Admin               bool
	Cancelling                    [][]prose.Piece
}

// namedView is a member that a job names.
type namedView struct {
	ID, Name, Part string
	URLs           []string
	Is             string // role and state now; empty: it is not known
}

// one shows one job.
func (c *changes) one(ctx context.Context, r *page.Request) (any, error) {
	id, err := jobID(r.Query.Get("id"))
	if err != nil {
		return oneView{Fault: err.Error()}, nil
	}
	k, err := look(ctx, r)
	if err != nil {
		return nil, err
	}
	job := k.job(id)
	if job == nil {
		return oneView{Fault: gone(id)}, nil
	}
	return c.oneOf(r, k, job), nil
}

// gone says that the cluster does not know a job.
func gone(id uint64) string {
	return "The cluster remembers no job " + observed.Hex(id) + ". It remembers the last 50 that have ended; this one is " +
		"older, or never was."
}

func (c *changes) oneOf(r *page.Request, k *known, job *quoratepb.Job) oneView {
	spec := job.GetSpec()
	v := oneView{jobView: c.viewOf(r, k, job), Still: k.still, CreatedMs: job.CreatedMs, StartedMs: job.StartedMs,
		EndedAt: job.EndedMs, Force: spec.GetForce(), Members: membersOf(k, job), Admin: r.Admin,
		Replaces: spec.GetKind() == "replace" && len(spec.GetRemove()) == 1}
	if v.Ended {
		v.Still = ""
	}
	if job.Config != nil {
		v.Began = wording.ConfigID(job.Config)
	}
	if job.Final != nil {
		v.Final = wording.ConfigID(job.Final)
	}
	if spec.GetExpected() != nil {
		v.Expected = wording.ConfigID(spec.Expected)
	}
	if ms := spec.GetJoinWithinMs(); ms > 0 {
		v.JoinWithin = page.Duration(time.Duration(ms) * time.Millisecond)
	}
	for _, id := range spec.GetAfter() {
		v.After = append(v.After, observed.Hex(id))
	}
	return v
}

// membersOf lists the members that a job names, with what becomes of each.
func membersOf(k *known, job *quoratepb.Job) (out []namedView) {
	spec := job.GetSpec()
	add := func(id uint64, part string, urls []string) {
		v := namedView{ID: observed.Hex(id), Name: k.names.Of(id), Part: part, URLs: urls, Is: k.nowOf(id)}
		if at := slices.IndexFunc(out, func(n namedView) bool { return n.ID == v.ID }); at >= 0 {
			out[at].Part += ", " + part
			return
		}
		out = append(out, v)
	}
	for i, n := range spec.GetAdd() {
		part := "joins, and votes once it has caught up"
		if n.Learner {
			part = "joins as a learner"
		}
		v := namedView{Name: n.Name, Part: part, URLs: n.PeerUrls}
		if i < len(job.Newcomers) {
			v.ID, v.Is = observed.Hex(job.Newcomers[i]), k.nowOf(job.Newcomers[i])
		}
		out = append(out, v)
	}
	for _, set := range []struct {
		ids  []uint64
		part string
	}{{spec.GetRemove(), "leaves for ever"}, {spec.GetPromote(), "becomes a voter"}, {spec.GetDemote(), "becomes a learner"},
		{spec.GetCordon(), "leaves leadership to others"}, {spec.GetUncordon(), "may lead again"},
		{spec.GetDrain(), "hands leadership on"}} {
		for _, id := range set.ids {
			add(id, set.part, nil)
		}
	}
	for _, u := range spec.GetUpdate() {
		add(u.Id, "gets other peer URLs", u.PeerUrls)
	}
	return out
}

// nowOf says what a member is now.
func (k *known) nowOf(id uint64) string {
	for _, m := range k.cluster.GetMembers() {
		if m.Id == id {
			return wording.MemberRole(m) + ", " + observed.StateOf(m)
		}
	}
	if k.cluster.GetConfig() == nil {
		return ""
	}
	return "no member"
}

// cancelling shows what becomes of a job that is cancelled.
func (c *changes) cancelling(ctx context.Context, r *page.Request) (any, error) {
	id, err := jobID(r.Query.Get("id"))
	if err != nil {
		return oneView{Fault: err.Error()}, nil
	}
	k, err := look(ctx, r)
	if err != nil {
		return nil, err
	}
	job := k.job(id)
	if job == nil {
		return oneView{Fault: gone(id)}, nil
	}
	v := c.oneOf(r, k, job)
	v.Cancelling = prose.All(wording.Cancelling(job, k.names))
	return v, nil
}

// cancel asks the leader for the end of a job.
func cancel(ctx context.Context, r *page.Request) (page.Outcome, error) {
	id, err := jobID(r.Form.Get("id"))
	if err != nil {
		return page.Outcome{}, err
	}
	job, err := quoratepb.NewMembershipClient(r.Conn).CancelJob(ctx, &quoratepb.CancelJobRequest{Id: id})
	if status.Code(err) == codes.NotFound {
		return page.Outcome{}, page.FormError(gone(id))
	}
	if err != nil {
		return page.Outcome{}, refusal(err)
	}
	said := "Job " + observed.Hex(id) + " is being cancelled."
	if wording.Ended(job) {
		said = "Job " + observed.Hex(id) + " is " + job.State + "."
	}
	return page.Outcome{To: jobPath + "?id=" + observed.Hex(id), Said: said}, nil
}

// refusal is the error of a change in words for the reader, where the frame would tell less of it.
func refusal(err error) error {
	answer := status.Convert(err)
	for _, detail := range answer.Details() {
		if stale, ok := detail.(*quoratepb.StaleConfig); ok {
			return page.FormError("The members have changed since the plan was made: " + page.Text(wording.Stale(stale)) + ".")
		}
	}
	switch {
	case page.Passes(err) && answer.Code() != codes.ResourceExhausted: // such as too many jobs
		return page.FormError("The cluster did not answer in time (" + page.Text(answer.Message()) + "). It may have been " +
			"done all the same: the page of changes shows it. Sending the form again makes no second job.")
	case slices.Contains([]codes.Code{codes.FailedPrecondition, codes.InvalidArgument, codes.Aborted, codes.AlreadyExists,
		codes.NotFound}, answer.Code()):
		return page.FormError("Nothing was changed: " + page.Text(lines(answer.Message())))
	}
	return err
}
