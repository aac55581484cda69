package process_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// collectBound is how long a member may take to answer for all, and collectSlack what a busy machine adds.
const (
	collectBound = 2 * time.Second
	collectSlack = 5 * time.Second
)

// collect asks one member for all.
func (c *cluster) collect(n *node) (*quoratepb.Collected, time.Duration) {
	c.t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(n.client, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	c.must(err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	api := quoratepb.NewDoctorClient(conn)
	if _, err := api.Observe(ctx, &quoratepb.ObserveRequest{}); err != nil { // the connection takes its time, too
		c.t.Logf("observe %s: %v", n.name, err)
		return nil, 0
	}
	begun := time.Now()
	all, err := api.Collect(ctx, &quoratepb.CollectRequest{Series: true})
	if err != nil {
		c.t.Errorf("collect through %s: %v", n.name, err)
	}
	return all, time.Since(begun)
}

// judgedThrough waits for the first finding through a member, and wants all others to be effects of it.
func (c *cluster) judgedThrough(n *node, code doctor.Code, words ...string) {
	c.t.Helper()
	var found []doctor.Finding
	until(c.t, string(code)+" through "+n.name, func(context.Context) bool {
		all, took := c.collect(n)
		if took > collectBound+collectSlack {
			c.t.Errorf("%s answered for all after %v", n.name, took)
		}
		found = doctor.Judge(all)
		return len(found) > 0 && found[0].Code == code
	})
	for _, word := range words {
		if !strings.Contains(found[0].Sentence, word) {
			c.t.Errorf("the first finding through %s is %s, want %q in it", n.name, found[0].Sentence, word)
		}
	}
	for _, f := range found[1:] {
		if f.Because == "" && f.Code != code {
			c.t.Errorf("through %s, beside %s: %s: %s", n.name, code, f.Code, f.Sentence)
		}
	}
	c.t.Logf("through %s: %s: %s", n.name, found[0].Code, found[0].Sentence)
}

// TestCollect wants one member to answer for all in time, whatever happens to the others, and a verdict of that which is true.
func TestCollect(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, calm...)
	n := c.leaderFirst()
	c.put(n[0], "k", "1")
	for _, through := range n {
		all, _ := c.collect(through)
		if found := doctor.Judge(all); doctor.Worst(found) != 0 && doctor.Worst(found) < doctor.Advice {
			t.Errorf("a healthy cluster, through %s: %v", through.name, found)
		}
		for _, m := range all.GetMembers() {
			if m.GetObservation() == nil || m.GetObservation().GetTraffic() == nil {
				t.Errorf("through %s: %v", through.name, m)
			}
		}
	}
	if v := c.doctor("--through-member"); v.status != 0 || v.Answered != 3 {
		t.Errorf("quorate doctor through a member: %d answered, %v", v.Answered, &v)
	}
	// The proxy before a stopped process accepts connections, and nothing answers.
	c.must(n[2].cmd.Process.Signal(syscall.SIGSTOP))
	c.judgedThrough(n[1], doctor.MemberHangs, n[2].name+" hangs")
	c.judgedThrough(n[0], doctor.MemberHangs, n[2].name+" hangs")
	c.must(n[2].cmd.Process.Signal(syscall.SIGCONT))
	// A cut proxy, and one whose member was killed, accept connections and close them.
	n[2].proxy.cut()
	c.judgedThrough(n[1], doctor.Unreached, n[2].name+" does not answer "+n[1].name, "it is down, hangs, or the way to it is closed")
	n[2].proxy.heal()
	n[2].kill()
	c.judgedThrough(n[0], doctor.Unreached, n[2].name+" does not answer "+n[0].name)
	n[2].proxy.close() // now its port refuses connections
	c.judgedThrough(n[0], doctor.MemberDown, n[2].name+" is down", "connection refused")
	n[1].proxy.cut()
	n[0].proxy.cut()
	want := map[doctor.Code]string{doctor.MemberDown: n[2].name + " is down", doctor.Unreached: n[1].name + " does not answer",
		doctor.CutOff: n[0].name + " has known no leader for "}
	until(t, "one that is alone says so", func(context.Context) bool {
		all, _ := c.collect(n[0])
		seen := 0
		for _, f := range doctor.Judge(all) {
			if words, wanted := want[f.Code]; wanted && strings.HasPrefix(f.Sentence, words) {
				seen++
			} else if f.Severity < doctor.Advice && seen == len(want) {
				t.Errorf("one that is alone says %s: %s", f.Code, f.Sentence)
			}
		}
		return seen == len(want)
	})
}
