package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// packed is a bundle with this text; manifest is added to the manifest's end.
func packed(t *testing.T, collected, behind string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(collected))
	m, err := json.Marshal(manifest{Format: bundleFormat, Sum: hex.EncodeToString(sum[:])})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	a := tar.NewWriter(z)
	for _, file := range [][2]string{{manifestFile, string(m) + behind}, {collectedFile, collected}} {
		if err := a.WriteHeader(&tar.Header{Name: file[0], Mode: 0o600, Size: int64(len(file[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if a.Close() != nil || z.Close() != nil {
		t.Fatal("the bundle is not written")
	}
	path := filepath.Join(t.TempDir(), "b.tgz")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ensure that a small file which becomes large in memory is refused in one sentence, before it does.
func TestBundle_bombs(t *testing.T) {
	for _, row := range []struct{ name, collected, behind, want string }{
		{"a long manifest", "{}", strings.Repeat(" ", 64<<10), "manifest.json has more than 64 KiB"},
		{"a long text", "{" + strings.Repeat(" ", 4<<20) + "}", "", "collected.json has more than 4096 KiB"},
		{"empty members", `{"members":[{}` + strings.Repeat(",{}", 1<<20) + "]}", "", "collected.json has more than 131072 " +
			"messages"},
		{"deep", strings.Repeat(`{"members":[`, 1<<16), "", "no bundle of"},
		{"a good one", `{"members":[{}]}`, "", ""},
	} {
		_, err := readBundle(packed(t, row.collected, row.behind))
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v", row.name, err)
		} else if err != nil && (len(err.Error()) > 400 || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: no sentence: %v", row.name, err)
		}
	}
}

// Ensure that what was collected of members that say as much as they may is written so that it can be read.
func TestBundle_large(t *testing.T) {
	c := &quoratepb.Collected{AtMs: 5}
	for i := range 128 {
		m := &quoratepb.CollectedMember{Id: uint64(i + 1), Name: strings.Repeat("<", 400), Fault: "silent",
			FaultText: strings.Repeat("&", 400)}
		if i%2 == 0 {
			m.Fault, m.Observation = "", &quoratepb.Observation{MemberId: m.Id}
			for k := range 128 {
				m.Observation.Peers = append(m.Observation.Peers, &quoratepb.ObservedPeer{Id: uint64(k),
					Fault: strings.Repeat("x", 3*i), State: strings.Repeat("y", 3*i), Refused: strings.Repeat("z", 3*i)})
			}
		}
		c.Members = append(c.Members, m)
	}
	path := filepath.Join(t.TempDir(), "b.tgz")
	if err := writeBundle(path, c); err != nil {
		t.Fatal(err)
	}
	got, err := readBundle(path)
	if err != nil || len(got.GetMembers()) != 128 {
		t.Fatalf("%d members, %v", len(got.GetMembers()), err)
	}
	if m := got.GetMembers(); m[0].GetObservation() == nil || m[126].GetFault() != doctor.FaultLong ||
		c.Members[126].Observation == nil {
		t.Errorf("the first: %.100v; the longest: %s; it was changed: %v", m[0].GetFault(), m[126].GetFault(),
			c.Members[126].Observation == nil)
	}
}

// boaster answers with so many empty peers.
type boaster struct {
	quoratepb.UnimplementedDoctorServer
	peers int
}

func (b boaster) Observe(context.Context, *quoratepb.ObserveRequest) (*quoratepb.Observation, error) {
	o := &quoratepb.Observation{MemberId: 7}
	for range b.peers {
		o.Peers = append(o.Peers, &quoratepb.ObservedPeer{})
	}
	return o, nil
}

// Ensure that an answer beyond the bound is a fault with a sentence, and that of one within it only what fits is kept.
func TestObserve_bombs(t *testing.T) {
	for peers, want := range map[int]string{
		2: "2 ", 120_000: "128 ", 200_000: "0 long: its answer has more than 256 KiB",
	} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		quoratepb.RegisterDoctorServer(server, boaster{peers: peers})
		go func() { _ = server.Serve(listener) }()
		defer server.Stop()
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{listener.Addr().String()}, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		m := &quoratepb.CollectedMember{}
		got := ""
		if err := observe(t.Context(), client, m, &command.Answers{}); err != nil {
			word, text := faultOf(err)
			got = word + ": " + text
		}
		if got = fmt.Sprintf("%d %s", len(m.GetObservation().GetPeers()), got); got != want {
			t.Errorf("%d peers: got %q, want %q", peers, got, want)
		}
		if n := cap(m.GetObservation().GetPeers()); n > 1024 {
			t.Errorf("%d peers: there is room for %d", peers, n)
		}
	}
}
