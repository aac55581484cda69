package process_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestDistance_latency puts three processes 50 ms apart and measures them by the command of an operator, which knows one of
// them. Only what distance makes impossible is wrong: how much longer it takes is up to the machine.
func TestDistance_latency(t *testing.T) {
	const trip, count = 50.0, 5
	c := startCluster(t, 3, "--peer-delay=25ms")
	endpoint := strings.TrimPrefix(c.nodes[1].client, "http://")
	command := exec.Command(c.binary, "latency", "-o=json", "--count=5", "--timeout=20s", "--endpoints="+endpoint)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type times struct {
		Count int
		P50   float64 `json:"p50_ms"`
	}
	var rows []struct {
		Name, Role string
		Put, Get   times
		Trips      map[string]float64 `json:"round_trips_ms"`
	}
	if err := json.Unmarshal(out, &rows); err != nil || len(rows) != 3 {
		t.Fatalf("%v: %d members in\n%s", err, len(rows), out)
	}
	leaders := 0
	for _, r := range rows {
		if r.Role == "leader" {
			leaders++
		}
		if r.Put.Count != count || r.Get.Count != count {
			t.Errorf("%s: %d puts and %d gets, want %d of each", r.Name, r.Put.Count, r.Get.Count, count)
		}
		if r.Put.P50 < trip || r.Get.P50 < trip {
			t.Errorf("%s, %s: put %v ms, get %v ms, which is less than the way to any other member and back", r.Name, r.Role,
				r.Put.P50, r.Get.P50)
		}
		if len(r.Trips) != 2 {
			t.Errorf("%s has measured its way to %v, want both others", r.Name, r.Trips)
		}
		for peer, ms := range r.Trips {
			if ms < trip {
				t.Errorf("%s to %s: measured %v ms, want at least %v", r.Name, peer, ms, trip)
			}
		}
	}
	if leaders != 1 {
		t.Errorf("%d leaders in\n%s", leaders, out)
	}
}

// TestDistance_ownWrites: a client that writes through a member sees that in all that it reads through it, also in what is
// read there without asking another member, although a write between sites is answered before it is applied.
func TestDistance_ownWrites(t *testing.T) {
	c := startCluster(t, 3, "--peer-delay=10ms")
	for i := range 12 {
		n := c.nodes[i%len(c.nodes)]
		client := c.connect(n)
		key, value := fmt.Sprintf("own/%d", i%4), fmt.Sprint(i)
		put, err := client.Put(t.Context(), key, value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Get(t.Context(), key, clientv3.WithSerializable())
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value || got.Header.Revision < put.Header.Revision {
			t.Errorf("%s: %v, %v after a put at revision %d", n.name, got, err, put.Header.Revision)
		}
		if put, err = client.Put(t.Context(), key, value+"+"); err != nil {
			t.Fatal(err)
		}
		at := clientv3.WithRev(put.Header.Revision)
		if got, err = client.Get(t.Context(), key, clientv3.WithSerializable(), at); err != nil || len(got.Kvs) != 1 {
			t.Errorf("%s: %v, %v at the revision of the put", n.name, got, err)
		}
		if put, err = client.Put(t.Context(), key, value+"++"); err != nil {
			t.Fatal(err)
		}
		watching := client.Watch(t.Context(), key, clientv3.WithCreatedNotify())
		if created := <-watching; !created.Created || created.Header.Revision < put.Header.Revision {
			t.Errorf("%s: a watch began at %d, after a put at %d", n.name, created.Header.Revision, put.Header.Revision)
		}
		_ = client.Close()
	}
}
