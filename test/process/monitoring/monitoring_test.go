package monitoring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ofSpeed are alerts that a slow machine may raise.
var ofSpeed = []string{"etcdGRPCRequestsSlow", "etcdMemberCommunicationSlow", "etcdHighFsyncDurations",
	"etcdHighCommitDurations", "QuorateRequestsSlow", "QuorateLogSyncSlow", "QuorateStoreFlushSlow"}

// appearing are series that are there only while something is wrong.
var appearing = []string{"etcd_debugging_server_alarms"}

// scraper scrapes a cluster once a minute of a time that it makes up.
type scraper struct {
	*series
	cluster *cluster
}

func (s *scraper) minutes(t *testing.T, n int, between func()) {
	t.Helper()
	for range n {
		between()
		s.now = s.now.Add(time.Minute)
		for i, m := range s.cluster.members {
			instance, up := fmt.Sprintf("m%d", i), 0.0
			if page, answers := m.page(t); answers {
				s.addPage(t, page, job, instance)
				up = 1
			}
			s.add(up, labels.FromStrings("__name__", "up", "job", job, "instance", instance))
		}
	}
}

// firing returns the names of the rules that are true now.
func (s *scraper) firing(t *testing.T, rules []rule) []string {
	t.Helper()
	var names []string
	for _, r := range rules {
		if len(s.ask(t, r.expression)) > 0 && !slices.Contains(names, r.name) && !slices.Contains(ofSpeed, r.name) {
			names = append(names, r.name)
		}
	}
	return names
}

// demand wants some alerts to be true.
func (s *scraper) demand(t *testing.T, rules []rule, when string, names ...string) {
	t.Helper()
	got := s.firing(t, rules)
	for _, name := range names {
		if !slices.Contains(got, name) {
			t.Errorf("%s: %s is silent; true are %v", when, name, got)
		}
	}
}

func TestMonitoring(t *testing.T) {
	s := &scraper{newSeries(), start(t, "--metrics=extensive", "--quota-backend-bytes=33554432",
		"--compact-hash-check-time=1s")}
	alerts := append(ourRules(t), etcdRules(t)...)
	queries := append(ourDashboard(t), etcdDashboard(t)...)
	c := s.cluster.client
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	watched := c.Watch(ctx, "k", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-watched
	granted, err := c.Grant(ctx, 3600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.KeepAlive(ctx, granted.ID); err != nil {
		t.Fatal(err)
	}

	s.cluster.starts(ctx, t, 1)
	s.minutes(t, 25, func() {
		for i := range 5 {
			if _, err := c.Put(ctx, fmt.Sprintf("k%d", i), "v"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Get(ctx, fmt.Sprintf("k%d", i)); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, r := range append(slices.Clone(alerts), queries...) {
		for _, selector := range s.unknown(t, r.expression) {
			if !slices.ContainsFunc(appearing, func(name string) bool { return strings.HasPrefix(selector, name) }) {
				t.Errorf("%s %s: nothing has %s", r.name, r.expression, selector)
			}
		}
	}
	for _, r := range queries {
		s.ask(t, r.expression)
	}
	for _, expression := range s.measured(t, alerts) {
		if len(s.ask(t, expression)) == 0 {
			t.Errorf("no value of %s", expression)
		}
	}
	if got := s.firing(t, alerts); len(got) > 0 {
		t.Errorf("all is well, but these alerts are true: %v", got)
	}

	s.backups(ctx, t, alerts)
	began := s.now
	s.now = time.Now().AddDate(1, 0, -1).Add(time.Hour) // the members' certificates are good for a year
	s.minutes(t, 65, func() {})
	s.demand(t, alerts, "certificates expire within a day", "QuorateCertificateExpiresSoon", "QuorateCertificateExpires")
	s.now = began

	large := strings.Repeat("v", 1<<20)
	for i := 0; ; i++ {
		if _, err := c.Put(ctx, fmt.Sprintf("large%d", i), large); errors.Is(err, rpctypes.ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	s.minutes(t, 10, func() { _, _ = c.Put(ctx, "refused", large) })
	s.demand(t, alerts, "the store is full", "etcdDatabaseQuotaLowSpace", "etcdHighNumberOfFailedGRPCRequests",
		"QuorateQuotaNearlyUsed", "QuorateAlarm", "QuorateRequestsFail")

	s.cluster.members[2].kill()
	s.minutes(t, 10, func() {})
	s.demand(t, alerts, "one member is down", "etcdMembersDown", "QuorateMemberDown")
	s.cluster.members[1].kill()
	for alone := s.cluster.members[0]; ; {
		if page, _ := alone.page(t); strings.Contains(string(page), "etcd_server_has_leader 0\n") {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("a member that is alone still has a leader")
		}
	}
	s.minutes(t, 6, func() {})
	s.demand(t, alerts, "two members are down", "etcdInsufficientMembers", "etcdNoLeader", "QuorateMajorityDown",
		"QuorateNoLeader")
}
