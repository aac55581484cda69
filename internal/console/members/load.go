package members

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// known is what the page knows of the cluster. All its texts are printable, so that templates show them as they are.
type known struct {
	Cluster *quoratepb.Cluster // never nil
	All     *observed.Answer   // never nil
	// Without says why the leader's view is missing; empty: it is there.
	Without string
}

// load asks for the leader's view, and for what all members observe, at once. One of them is enough.
func load(ctx context.Context, r *page.Request) (*known, error) {
	var k known
	var noLeader, unobserved error
	describe := page.Go(func() { k.Cluster, noLeader = observed.Describe(ctx, r) })
	k.All, unobserved = observed.Ask(ctx, r)
	describe()
	switch {
	case refused(noLeader):
		return nil, noLeader
	case noLeader != nil && unobserved != nil:
		return nil, noLeader
	case noLeader != nil:
		k.Cluster, k.Without = k.All.Cluster(), "The leader's view is missing: "+missing(noLeader)+
			". Below is what the members that answered know themselves."
	case unobserved != nil:
		k.All = observed.Of(nil)
	}
	slices.SortStableFunc(k.Cluster.GetMembers(), func(a, b *quoratepb.Member) int {
		return cmp.Compare(a.GetName(),
			b.GetName())
	})
	return &k, nil
}

// missing says why the leader did not answer.
func missing(err error) string {
	if status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
		return "no leader answered within " + page.Duration(observed.DescribePatience)
	}
	return page.Text(status.Convert(err).Message())
}

// refused reports whether an error is about the user, not about the cluster.
func refused(err error) bool {
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true
	}
	return false
}

// ofAll loads a section of the page about all members.
func ofAll(show func(*known, *page.Request) any) func(context.Context, *page.Request) (any, error) {
	return func(ctx context.Context, r *page.Request) (any, error) {
		if r.Query.Get("member") != "" {
			return nil, page.ErrHidden
		}
		k, err := load(ctx, r)
		if err != nil {
			return nil, err
		}
		return show(k, r), nil
	}
}

// one is the member that a page is about.
type one struct {
	*known
	Is *quoratepb.Member // as the leader sees it
	// Seen is what is observed of it; never nil.
	Seen *observed.Member
	Word string // that the query has
	// Gone says that there is no such member; empty: there is.
	Gone string
}

// ofOne loads a section of the page about one member. Sections other than the first are left out if there is none.
func ofOne(show func(*one, *page.Request) (any, error)) func(context.Context, *page.Request) (any, error) {
	return func(ctx context.Context, r *page.Request) (any, error) {
		word := r.Query.Get("member")
		if word == "" {
			return nil, page.ErrHidden
		}
		k, err := load(ctx, r)
		if err != nil {
			return nil, err
		}
		o := &one{known: k, Word: word, Seen: &observed.Member{}}
		m, err := wording.FindMember(k.Cluster, word)
		if err != nil {
			o.Gone = page.Text(err.Error())
			return show(o, r)
		}
		o.Is = m
		if seen := k.All.Member(m.GetId()); seen != nil {
			o.Seen = seen
		}
		return show(o, r)
	}
}
