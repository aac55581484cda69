package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/keysource"
)

// Ensure that a member tells where its log ends, by term and index, as its directory says it once it is stopped: after the loss
// of a quorum survivors are compared by it.
func TestServer_observedLog(t *testing.T) {
	m := newSealed(t)
	var told *quoratepb.ObservedCore
	var page string
	for start := range 2 { // each begins a term
		m.with(func(ctx context.Context, c *clientv3.Client) {
			for i := range 5 {
				if _, err := c.Put(ctx, fmt.Sprintf("k%d", i), "v"); err != nil {
					t.Fatal(err)
				}
			}
			o, err := quoratepb.NewDoctorClient(c.ActiveConnection()).Observe(ctx, &quoratepb.ObserveRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if start == 1 {
				told, page = o.GetCore(), metricsOf(t, c)
			}
		})
	}
	if told.GetLastTerm() < 2 || told.GetLastIndex() < 10 || told.GetEpoch() != 0 {
		t.Errorf("after two terms it tells %v", told)
	}
	for _, line := range []string{fmt.Sprintf("quorate_raft_last_term %d", told.GetLastTerm()), "quorate_epoch 0",
		"quorate_raft_last_index "} {
		if !strings.Contains(page, "\n"+line) {
			t.Errorf("the metrics lack %q", line)
		}
	}
	stopped, err := server.OpenStopped(t.Context(), m.dir, "", keysource.Source{})
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Close()
	disk, err := stopped.Inspect()
	if err != nil {
		t.Fatal(err)
	}
	if uint64(disk.Last.Term) != told.GetLastTerm() || uint64(disk.Last.Index) < told.GetLastIndex() {
		t.Errorf("it told of term %d, entry %d, and its directory ends at %+v", told.GetLastTerm(), told.GetLastIndex(),
			disk.Last)
	}
}

func metricsOf(t *testing.T, c *clientv3.Client) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.Endpoints()[0]+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
