package keys

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/page"
)

const (
	mostLeases = 30 // of a page: each is asked for by itself
	// leasePatience is how long the leases of a page are asked for.
	leasePatience  = 900 * time.Millisecond
	mostLeaseKeys  = 200
	manyLeases     = 10_000
	manyLeasesRest = 30 * time.Second // between two lists of so many leases
)

func leaseIn(text string) (int64, error) {
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil || id == 0 {
		return 0, badf("%q is no lease: the id of a lease is a hexadecimal number.", cut(page.Text(text), 40))
	}
	return int64(id), nil
}

// leaseView is a lease that counts down.
type leaseView struct {
	ID      string
	Href    string
	Unknown bool // it was not asked for in time
	Ended   bool
	Left    int64  // seconds
	Share   int64  // hundredths of its time that are left
	For, Of string // the time that is left, and that it was granted for
}

// leaseOf asks how long a lease lasts.
func leaseOf(ctx context.Context, r *page.Request, id int64) (leaseView, error) {
	v := leaseView{ID: hexOf(id), Href: toLease(id)}
	answer, err := pb.NewLeaseClient(r.Conn).LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: id})
	if err != nil {
		return v, err
	}
	v.Ended, v.Left = answer.GetTTL() < 0, answer.GetTTL()
	v.Share = max(0, min(100, 100*v.Left/max(1, answer.GetGrantedTTL())))
	v.For = page.Duration(time.Duration(v.Left) * time.Second)
	v.Of = page.Duration(time.Duration(answer.GetGrantedTTL()) * time.Second)
	return v, nil
}

// longList remembers when a list of many leases was read: it has no pages, and so it is read seldom.
type longList struct {
	mu    sync.Mutex
	at    time.Time
	count int
}

// rest returns an error while a long list rests.
func (l *longList) rest(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.at.Add(manyLeasesRest).Sub(now); l.count > manyLeases && wait > 0 {
		return status.Errorf(codes.ResourceExhausted, "This member has %s, which it can only list as a whole. The list is "+
			"read again in %s.", plural.Of(l.count, "lease"), page.Duration(wait.Round(time.Second)))
	}
	return nil
}

func (l *longList) read(now time.Time, count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.count = now, count
}

// leasesView is a page of the leases.
type leasesView struct {
	Rows     []leaseView
	Count    int
	From, To int // the leases of the page, from 1
	More     string
	First    string
	Revision int64
	Member   string
	Fault    string // why some were not asked for
}

// leases lists leases, those first that this member expects to end first.
func (l *longList) leases(ctx context.Context, r *page.Request) (any, error) {
	skip, err := revisionIn(r.Query, "skip")
	if err != nil {
		return nil, badf("The address is not one that this console made: begin again without its part skip=.")
	}
	if err := l.rest(r.Now); err != nil {
		return nil, err
	}
	answer, err := pb.NewLeaseClient(r.Conn).LeaseLeases(ctx, &pb.LeaseLeasesRequest{})
	if err != nil {
		return nil, err
	}
	all := answer.GetLeases()
	l.read(r.Now, len(all))
	v := &leasesView{Count: len(all), Revision: answer.GetHeader().GetRevision(), Member: r.Member}
	begin := int(min(skip, int64(len(all))))
	v.From, v.To = min(begin+1, len(all)), min(begin+mostLeases, len(all))
	if v.To < len(all) {
		v.More = to("/keys/leases", "skip", strconv.Itoa(v.To))
	}
	if begin > 0 {
		v.First = "/keys/leases"
	}
	v.ask(ctx, r, all[begin:v.To])
	return v, nil
}

// ask asks how long the leases of the page last, one after the other: the leader knows.
func (v *leasesView) ask(ctx context.Context, r *page.Request, list []*pb.LeaseStatus) {
	ctx, cancel := context.WithTimeout(ctx, leasePatience)
	defer cancel()
	for _, one := range list {
		row := leaseView{ID: hexOf(one.GetID()), Href: toLease(one.GetID()), Unknown: true}
		if v.Fault == "" {
			asked, err := leaseOf(ctx, r, one.GetID())
			if err != nil {
				v.Fault = status.Convert(err).Message()
			} else {
				row = asked
			}
		}
		v.Rows = append(v.Rows, row)
	}
	if v.Fault == "" {
		slices.SortStableFunc(v.Rows, func(a, b leaseView) int { return int(a.Left - b.Left) })
	}
}

// showLease counts the lease of a key down. It reads no value.
func showLease(ctx context.Context, r *page.Request) (any, error) {
	key, err := keyIn(r.Query)
	if at, _ := revisionIn(r.Query, "rev"); err != nil || at > 0 {
		return nil, page.ErrHidden
	}
	answer, err := versionAt(ctx, r, key, 0)
	if err != nil || len(answer.GetVersions()) == 0 || answer.GetVersions()[0].GetLease() == 0 {
		return nil, page.ErrHidden // the section above says what is wrong
	}
	return leaseOf(ctx, r, answer.GetVersions()[0].GetLease())
}

// oneLease counts one lease down.
func oneLease(ctx context.Context, r *page.Request) (any, error) {
	id, err := leaseIn(r.Query.Get("id"))
	if err != nil {
		return nil, err
	}
	v, err := leaseOf(ctx, r, id)
	v.Href = ""
	return v, err
}

// keyRow is a key of a lease.
type keyRow struct{ Name, Href string }

// leaseKeysView are the keys of a lease.
type leaseKeysView struct {
	ID    string
	Ended bool
	Rows  []keyRow
	Count int
	Left  int // keys that are not listed
	Admin bool
}

// leaseKeys lists the keys of a lease.
func leaseKeys(ctx context.Context, r *page.Request) (any, error) {
	id, err := leaseIn(r.Query.Get("id"))
	if err != nil {
		return nil, page.ErrHidden // the section above says what is wrong
	}
	answer, err := pb.NewLeaseClient(r.Conn).LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: id, Keys: true})
	if err != nil {
		return nil, err
	}
	v := &leaseKeysView{ID: hexOf(id), Ended: answer.GetTTL() < 0, Count: len(answer.GetKeys()), Admin: r.Admin}
	for _, key := range answer.GetKeys()[:min(v.Count, mostLeaseKeys)] {
		v.Rows = append(v.Rows, keyRow{short(key), toKey("/keys/key", key)})
	}
	v.Left = v.Count - len(v.Rows)
	return v, nil
}

func leaseCommand(r *page.Request) string {
	id, err := leaseIn(r.Query.Get("id"))
	if err != nil {
		return ""
	}
	return r.Command("lease", "show", hexOf(id))
}

// revoke ends a lease, and deletes its keys.
func revoke(ctx context.Context, r *page.Request) (out page.Outcome, err error) {
	id, err := leaseIn(r.Form.Get("id"))
	if err != nil {
		return out, err
	}
	typed, err := leaseIn(r.Form.Get("typed"))
	if err != nil || typed != id {
		return out, page.FormError("What was typed is not the id of the lease. Nothing was changed.")
	}
	if _, err := pb.NewLeaseClient(r.Conn).LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id}); err != nil {
		return out, err
	}
	return page.Outcome{To: "/keys/leases", Said: "The lease " + hexOf(id) + " was revoked, and its keys were deleted."}, nil
}
