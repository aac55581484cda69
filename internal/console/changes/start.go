package changes

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// maxSpecBytes bounds a specification that a form brings back.
const maxSpecBytes = 64 << 10

// start returns the action that makes a job of what was planned, and leads to the page of the job at this path.
func start(path string) func(context.Context, *page.Request) (page.Outcome, error) {
	return func(ctx context.Context, r *page.Request) (page.Outcome, error) {
		request, err := requestOf(r)
		if err != nil {
			return page.Outcome{}, err
		}
		if err := confirmed(ctx, r, request.Spec); err != nil {
			return page.Outcome{}, err
		}
		api := quoratepb.NewMembershipClient(r.Conn)
		job, err := api.Start(ctx, request)
		if err != nil {
			return page.Outcome{}, refusal(err)
		}
		arrives(ctx, api, job.Id)
		name := observed.Hex(job.Id)
		return page.Outcome{To: path + "?id=" + name, Said: "Job " + name + " is " + job.State + "."}, nil
	}
}

// requestOf reads a form. It carries what was planned, so that nothing else is started.
func requestOf(r *page.Request) (*quoratepb.StartRequest, error) {
	id, err := jobID(r.Form.Get("request"))
	text := r.Form.Get("spec")
	spec := &quoratepb.ChangeSpec{}
	if err != nil || id == 0 || len(text) > maxSpecBytes || protojson.Unmarshal([]byte(text), spec) != nil ||
		wording.AsksNothing(spec) || spec.Expected == nil {
		return nil, page.FormError("This is no form of a plan. Nothing was changed: plan again.")
	}
	return &quoratepb.StartRequest{RequestId: id, Spec: spec}, nil
}

// confirmed refuses a change that removes members whose names were not typed. A member that is gone has no name that could be
// asked for: the leader refuses the change, or finds the job that removed it.
func confirmed(ctx context.Context, r *page.Request, spec *quoratepb.ChangeSpec) error {
	if len(spec.Remove) == 0 {
		return nil
	}
	cluster, err := describe(ctx, r)
	if err != nil {
		return refusal(err)
	}
	typed := names(r.Form.Get("confirm"))
	for _, id := range spec.Remove {
		there := slices.ContainsFunc(cluster.GetMembers(), func(m *quoratepb.Member) bool { return m.Id == id })
		name := page.Text(wording.MemberName(cluster, id))
		if there && !slices.Contains(typed, name) {
			return page.FormError("Type " + confirmation(cluster, spec) + ", who leave for ever, to confirm. Nothing was " +
				"changed.")
		}
	}
	return nil
}

// names are those of a text with commas between them.
func names(text string) (out []string) {
	for name := range strings.SplitSeq(text, ",") {
		out = append(out, strings.TrimSpace(name))
	}
	return out
}

const (
	// arrival is how long a job may take to be known to this member, which may follow.
	arrival      = 2 * time.Second
	arrivalPause = 50 * time.Millisecond
)

// arrives waits until this member knows a job that was just written, so that the page that is shown next finds it.
func arrives(ctx context.Context, api quoratepb.MembershipClient, id uint64) {
	ctx, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	for ctx.Err() == nil {
		answer, err := api.ListJobs(ctx, &quoratepb.ListJobsRequest{})
		if err != nil || slices.ContainsFunc(answer.GetJobs(), func(j *quoratepb.Job) bool { return j.Id == id }) {
			return
		}
		if broadcast.Pause(ctx, arrivalPause) != nil {
			return
		}
	}
}
