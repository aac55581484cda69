package changes

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// known is what a page knows of jobs and members.
type known struct {
	cluster *quoratepb.Cluster // empty: nobody leads
	jobs    []*quoratepb.Job   // oldest first
	names   wording.Names
	still   string // why no job moves on; empty if they do
}

// look asks for the jobs, and for the members as far as a leader tells of them.
func look(ctx context.Context, r *page.Request) (*known, error) {
	k := &known{cluster: &quoratepb.Cluster{}, names: wording.Names{}}
	var noLeader error
	describe := page.Go(func() {
		if cluster, err := observed.Describe(ctx, r); err == nil {
			k.cluster = cluster
		} else {
			noLeader = err
		}
	})
	answer, err := quoratepb.NewMembershipClient(r.Conn).ListJobs(ctx, &quoratepb.ListJobsRequest{})
	describe()
	switch {
	case err != nil:
		return nil, err
	case noLeader != nil && !page.Passes(noLeader):
		return nil, noLeader
	case noLeader != nil:
		k.still = "No job moves on at the moment: " + page.Text(status.Convert(noLeader).Message()) + "."
	}
	k.jobs = answer.GetJobs()
	k.names.Note(k.cluster)
	k.names.NoteJobs(k.jobs...)
	return k, nil
}

// job finds a job by its id; nil: the cluster does not remember it.
func (k *known) job(id uint64) *quoratepb.Job {
	at := slices.IndexFunc(k.jobs, func(j *quoratepb.Job) bool { return j.Id == id })
	if at < 0 {
		return nil
	}
	return k.jobs[at]
}

// jobID reads the id of a job as the tables write it. The error is a sentence for the reader.
func jobID(text string) (uint64, error) {
	text = strings.TrimSpace(text)
	id, err := strconv.ParseUint(text, 16, 64)
	switch {
	case text == "":
		return 0, page.FormError("The address names no job: it ends with ?id= and the id of one, in hexadecimal.")
	case err != nil:
		return 0, page.FormError(strconv.Quote(page.Text(text)) + " is not the id of a job: ids are hexadecimal, such as 3f2a.")
	}
	return id, nil
}
