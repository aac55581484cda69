package charts_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	release "helm.sh/helm/v4/pkg/release/v1"
)

// fill writes keys, and returns what was acknowledged.
func fill(t *testing.T, client *clientv3.Client, name string) map[string]string {
	t.Helper()
	acked := map[string]string{}
	for i := range 50 {
		key := fmt.Sprintf("/%s/%d", name, i)
		if _, err := client.Put(t.Context(), key, name); err != nil {
			t.Fatal(err)
		}
		acked[key] = name
	}
	return acked
}

func check(t *testing.T, client *clientv3.Client, all ...map[string]string) {
	t.Helper()
	for _, acked := range all {
		for key, value := range acked {
			answer, err := client.Get(t.Context(), key)
			if err != nil || len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != value {
				t.Fatalf("%s: got %v, %v; want %q", key, answer, err, value)
			}
		}
	}
}

func names(t *testing.T, client *clientv3.Client) []string {
	t.Helper()
	list, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range list.Members {
		out = append(out, m.Name)
	}
	slices.Sort(out)
	return out
}

// lose deletes the data of a pod that does not run, as if its claim were deleted.
func (g *ground) lose(p *pod, path string) {
	g.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.root, path)); err != nil {
		g.t.Fatal(err)
	}
}

// TestMembers plays a release on the processes of its pods: it is installed, authentication is turned on, it is scaled to five and
// back to three, a claim is lost, and all restart. Jobs are those of the release, with their commands and environment.
func TestMembers(t *testing.T) {
	g := newGround(t)
	const values = "auth: {rbac: {rootPassword: secret}}\nreplicaCount: "
	c := newCluster(t)
	r := c.mustInstall("db", values+"3")
	g.keepSecrets(r)
	for i := range 5 {
		g.number("db-quorate", i)
	}
	pods := []*pod{g.startMember(r, 0), g.startMember(r, 1)}
	pods[0].awaitSays("waits for the other members of --initial-cluster to found the cluster: db-quorate-2")
	pods = append(pods, g.startMember(r, 2))
	for _, p := range pods {
		p.awaitReady()
	}
	for range 2 { // an upgrade runs it again
		if status, said := g.runJob(r, "auth"); status != 0 {
			t.Fatalf("the job that turns authentication on: %d, %s", status, said)
		}
	}
	client := g.client("secret", pods...)
	acked := fill(t, client, "founded")

	r = c.mustUpgrade("db", values+"5")
	if status, said := g.runJob(r, "scale"); status != 0 {
		t.Fatalf("the job that adds members: %d, %s", status, said)
	}
	pods = append(pods, g.startMember(r, 3), g.startMember(r, 4))
	for _, p := range pods {
		p.awaitReady()
	}
	if got := names(t, client); len(got) != 5 || slices.Contains(got, "") {
		t.Fatalf("scaled to five: got the members %q", got)
	}

	r = c.mustUpgrade("db", values+"3")
	if status, said := g.runJob(r, "scale"); status != 0 {
		t.Fatalf("the job that removes members: %d, %s", status, said)
	}
	if got := names(t, client); strings.Join(got, " ") != "db-quorate-0 db-quorate-1 db-quorate-2" {
		t.Fatalf("scaled to three: got the members %q before the pods are gone", got)
	}
	for _, p := range pods[3:] {
		<-p.exited
		if status := p.cmd.ProcessState.ExitCode(); status != 4 {
			t.Errorf("%s, which was removed, ended with %d", p.name, status)
		}
	}
	more := fill(t, client, "scaled")

	one := pods[1]
	one.kill(syscall.SIGKILL)
	g.lose(one, "/var/lib/quorate")
	pods[1] = g.startMember(r, 1)
	pods[1].awaitSays("has lost its disk")
	if out := g.run("secret", pods[0], "member", "reset", "db-quorate-1", "--yes"); !strings.Contains(out, "done in") {
		t.Errorf("the reset says %q", out)
	}
	pods = pods[:3]
	for i, p := range pods {
		p.awaitReady()
		p.stop()
		pods[i] = g.startMember(r, i)
		pods[i].awaitReady()
	}
	check(t, g.client("secret", pods[1]), acked, more)
}

const peerURLs = "--peer-urls=http://{}.db-quorate-headless.prod.svc.cluster.local:2380"

// TestMembers_mostLost deletes the claims of a majority: the members wait and say why, and no second cluster is founded
// beside a member that has the data. Then that one is recovered, and the others are added; and then a saved file is restored into one
// claim, all as docs/kubernetes-chart.md says.
func TestMembers_mostLost(t *testing.T) {
	g := newGround(t)
	c := newCluster(t)
	r := c.mustInstall("db", "auth: {rbac: {create: false}}")
	var pods []*pod
	for i := range 5 {
		g.number("db-quorate", i)
	}
	for i := range 3 {
		pods = append(pods, g.startMember(r, i))
	}
	for _, p := range pods {
		p.awaitReady()
	}
	acked := fill(t, g.client("", pods...), "before")
	lost := []*pod{pods[0], pods[2]}
	for _, p := range lost {
		p.kill(syscall.SIGKILL)
		g.lose(p, "/var/lib/quorate")
	}
	for i := 0; i < 3; i += 2 {
		pods[i] = g.startMember(r, i)
		pods[i].awaitSays("has lost its disk")
	}
	for i, p := range pods {
		if _, err := os.Stat(filepath.Join(p.root, "/var/lib/quorate/data/member/wal")); i != 1 && err == nil {
			t.Errorf("%s made data of its own", p.name)
		}
		status, _ := p.probe(context.Background(), "/readyz")
		if status == 200 {
			t.Errorf("%s is ready without a majority", p.name)
		}
	}

	for _, p := range pods {
		p.stop()
	}
	pods[1].exec("", "recover", "--data-dir=/var/lib/quorate/data", "--members-are-lost=db-quorate-0,db-quorate-2", "--yes")
	g.addTo(r, pods, 1)
	check(t, g.client("", pods[2]), acked)

	saved := filepath.Join(t.TempDir(), "db.db")
	g.run("", pods[2], "snapshot", "save", saved)
	later := fill(t, g.client("", pods...), "later")
	for _, p := range pods {
		p.stop()
		g.lose(p, "/var/lib/quorate")
	}
	g.restoreFile(pods[0], saved)
	g.addTo(c.mustUpgrade("db", "{auth: {rbac: {create: false}}, initialClusterState: existing}"), pods, 0)
	client := g.client("", pods[1])
	check(t, client, acked)
	for key := range later {
		if got, err := client.Get(t.Context(), key); err != nil || got.Count != 0 {
			t.Fatalf("%s, which was written after the file was saved: got %v, %v", key, got, err)
		}
	}
}

// restoreFile restores a saved file into the claim of a pod that does not run.
func (g *ground) restoreFile(p *pod, path string) {
	g.t.Helper()
	inside := filepath.Join(p.root, "/var/lib/quorate")
	if err := errors.Join(os.MkdirAll(inside, 0o755), os.Chown(inside, user, user)); err != nil {
		g.t.Fatal(err)
	}
	copyFile(g.t, path, filepath.Join(inside, "db.db"))
	if err := os.Chown(filepath.Join(inside, "db.db"), user, user); err != nil {
		g.t.Fatal(err)
	}
	url := strings.ReplaceAll(strings.TrimPrefix(peerURLs, "--peer-urls="), "{}", p.name)
	p.exec("", "snapshot", "restore", "/var/lib/quorate/db.db", "--data-dir=/var/lib/quorate/data", "--name="+p.name,
		"--bump-revision=1000000000", "--mark-compacted", "--initial-cluster="+p.name+"="+url,
		"--initial-advertise-peer-urls="+url, "--initial-cluster-token=restored-1")
}

// addTo starts one member of three alone, and adds the others, whose claims are empty.
func (g *ground) addTo(r *release.Release, pods []*pod, alone int) {
	g.t.Helper()
	pods[alone] = g.startMember(r, alone)
	pods[alone].awaitReady()
	g.run("", pods[alone], "member", "scale", "db-quorate", "--to=3", peerURLs, "--yes")
	for i := range pods {
		if i != alone {
			pods[i] = g.startMember(r, i)
		}
	}
	for _, p := range pods {
		p.awaitReady()
	}
	if got := names(g.t, g.client("", pods[alone])); strings.Join(got, " ") != "db-quorate-0 db-quorate-1 db-quorate-2" {
		g.t.Fatalf("got the members %q", got)
	}
}
