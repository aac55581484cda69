package observed

import (
	"context"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/doctor"
)

// DescribePatience is how long the leader's view is waited for: the rest of the time of a page is for what is known without a
// leader.
const DescribePatience = 1200 * time.Millisecond

// Describe asks for the leader's view of the members, within the bounds of package doctor: no text of it moves a cursor, or is
// long. It is never nil if there is no error.
func Describe(ctx context.Context, r *page.Request) (*quoratepb.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, DescribePatience)
	defer cancel()
	answer, err := quoratepb.NewMembershipClient(r.Conn).Describe(ctx, &quoratepb.DescribeRequest{})
	switch {
	case err != nil:
		return nil, err
	case answer.GetCluster() == nil:
		return &quoratepb.Cluster{}, nil
	}
	return doctor.Trimmed(answer.GetCluster()), nil
}

// StateOf is how a member is as the leader sees it, for readers who need not know how the leader follows it.
func StateOf(m *quoratepb.Member) string {
	state := wording.State(m, true)
	if state == "-" || m.GetActive() && m.GetCaughtUp() && state == "replicate" {
		return "up"
	}
	return state
}
