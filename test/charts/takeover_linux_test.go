package charts_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcds are the versions whose directories are taken over. `make charts` builds them, and says by ETCDS where they are.
var etcds = []string{"3.5.35", "3.6.16", "3.7.3"}

// TestTakeover takes over the claims of a release of the former chart: three members of each etcd, with users, a lease and history,
// are stopped, their directories get what a kubelet and the former chart's scripts leave there, and the pods of the upgraded release
// start on them. Then it loses a claim, and goes back to etcd.
func TestTakeover(t *testing.T) {
	dir := os.Getenv("ETCDS")
	if dir == "" {
		t.Skip("ETCDS names no directory of etcds: make charts")
	}
	for _, version := range etcds {
		t.Run(version, func(t *testing.T) { takeOver(t, filepath.Join(dir, version, "etcd")) })
	}
}

const former = "shop-etcd" // as the former chart calls what the release shop has

// startEtcd starts a pod of the former chart's, with the environment that it gives to etcd.
func (g *ground) startEtcd(program string, n int) *pod {
	g.t.Helper()
	name, address := g.number(former, n)
	var members []string
	for i := range 3 {
		members = append(members, fmt.Sprintf("%s-%d=http://%[1]s-%[2]d.%[1]s-headless.%[3]s.svc.cluster.local:2380", former, i, namespace))
	}
	host := fmt.Sprintf("%s.%s-headless.%s.svc.cluster.local", name, former, namespace)
	return g.start(name, address, container{program: program, claim: "/bitnami/etcd", env: []string{
		"ETCD_NAME=" + name, "ETCD_DATA_DIR=/bitnami/etcd/data", "ETCD_LOG_LEVEL=info", "ETCDCTL_API=3", "ETCD_ON_K8S=yes",
		"ALLOW_NONE_AUTHENTICATION=no", "ETCD_ROOT_PASSWORD=rootpw",
		"ETCD_ADVERTISE_CLIENT_URLS=http://" + host + ":2379,http://" + former + "." + namespace + ".svc.cluster.local:2379",
		"ETCD_LISTEN_CLIENT_URLS=http://" + address + ":2379",
		"ETCD_INITIAL_ADVERTISE_PEER_URLS=http://" + host + ":2380", "ETCD_LISTEN_PEER_URLS=http://" + address + ":2380",
		"ETCD_INITIAL_CLUSTER_TOKEN=etcd-cluster-k8s", "ETCD_INITIAL_CLUSTER_STATE=new",
		"ETCD_INITIAL_CLUSTER=" + strings.Join(members, ","),
	}})
}

func takeOver(t *testing.T, program string) {
	g := newGround(t)
	var pods []*pod
	for i := range 5 {
		g.number(former, i)
	}
	for i := range 3 {
		pods = append(pods, g.startEtcd(program, i))
	}
	acked, revision, lease := fillFormer(t, g.client("", pods...))
	// An etcd that stops commits nothing more once nobody writes; it must not be killed.
	for _, p := range pods {
		p.stop()
		leave(t, p)
	}

	r, err := newCluster(t).install("shop", valuesFrom(t, layers("testdata/bitnami-takeover.values.yaml")...))
	if err != nil {
		t.Fatal(err)
	}
	g.secrets["etcd-root"] = map[string]string{"etcd-root-password": "rootpw"}
	for i := range pods {
		pods[i] = g.startMember(r, i)
	}
	for _, p := range pods {
		p.awaitReady()
	}
	client := g.client("rootpw", pods...)
	check(t, client, acked)
	if left, err := client.TimeToLive(t.Context(), lease, clientv3.WithAttachedKeys()); err != nil || len(left.Keys) != 1 {
		t.Errorf("the lease: got %v, %v", left, err)
	}
	if old, err := client.Get(t.Context(), "/shop/0", clientv3.WithRev(revision)); err != nil || len(old.Kvs) != 1 {
		t.Errorf("at revision %d: got %v, %v", revision, old, err)
	}
	if status, said := g.runJob(r, "auth"); status != 0 || !strings.Contains(said, "nothing to do") {
		t.Errorf("the job that turns authentication on: %d, %s", status, said)
	}
	more := fill(t, client, "taken")

	for i, p := range pods { // a rolling update
		p.stop()
		pods[i] = g.startMember(r, i)
		pods[i].awaitReady()
	}
	pods[2].kill(syscall.SIGKILL)
	g.lose(pods[2], "/bitnami/etcd")
	pods[2] = g.startMember(r, 2)
	pods[2].awaitSays("has lost its disk")
	g.run("rootpw", pods[0], "member", "reset", former+"-2", "--yes")
	pods[2].awaitReady()
	check(t, g.client("rootpw", pods[2]), acked, more)
	for _, p := range pods {
		p.stop()
	}
	g.goBack(program, pods, acked)
}

// TestTakeover_differs stops a member while the others write on: the pods do not found a cluster of members that hold different
// contents, and say so.
func TestTakeover_differs(t *testing.T) {
	dir := os.Getenv("ETCDS")
	if dir == "" {
		t.Skip("ETCDS names no directory of etcds: make charts")
	}
	program := filepath.Join(dir, etcds[0], "etcd")
	g := newGround(t)
	var pods []*pod
	for i := range 5 {
		g.number(former, i)
	}
	for i := range 3 {
		pods = append(pods, g.startEtcd(program, i))
	}
	client := g.client("", pods[0])
	check(t, g.client("", pods[2]), fill(t, client, "shop")) // it has applied all, so that its database lacks nothing of its log
	pods[2].stop()
	fill(t, client, "later")
	pods[0].stop()
	pods[1].stop()
	r, err := newCluster(t).install("shop", valuesFrom(t, layers("testdata/bitnami-takeover.values.yaml")...))
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		pods[i] = g.startMember(r, i)
	}
	for _, p := range pods {
		p.awaitSays("of another cluster")
	}
}

// fillFormer writes keys, one of a lease, and users, into an etcd.
func fillFormer(t *testing.T, client *clientv3.Client) (acked map[string]string, revision int64, lease clientv3.LeaseID) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	acked = fill(t, client, "shop")
	first, err := client.Get(t.Context(), "/shop/0")
	must(err)
	revision = first.Header.Revision
	granted, err := client.Grant(t.Context(), 3600)
	must(err)
	_, err = client.Put(t.Context(), "/leased", "x", clientv3.WithLease(granted.ID))
	must(err)
	_, err = client.Put(t.Context(), "/shop/0", "again")
	must(err)
	acked["/shop/0"], acked["/leased"] = "again", "x"
	_, err = client.UserAdd(t.Context(), "root", "rootpw")
	must(err)
	_, err = client.UserGrantRole(t.Context(), "root", "root")
	must(err)
	_, err = client.AuthEnable(t.Context())
	must(err)
	return acked, revision, granted.ID
}

// leave puts beside the data what the former chart's scripts leave there.
func leave(t *testing.T, p *pod) {
	t.Helper()
	for path, text := range map[string]string{"data/member_id": "8e9e05c52164694d\n", "member_removal.log": ""} {
		path := filepath.Join(p.root, "/bitnami/etcd", path)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, user, user); err != nil {
			t.Fatal(err)
		}
	}
}

// goBack gives the files of etcd their name again, on those members that have them, and starts etcd: it has what it had.
func (g *ground) goBack(program string, pods []*pod, acked map[string]string) {
	g.t.Helper()
	for _, p := range pods[:2] { // the third one lost its claim
		data := filepath.Join(p.root, "/bitnami/etcd/data")
		for _, names := range [][2]string{{"member", "member.quorate"}, {"member.etcd", "member"}} {
			if err := os.Rename(filepath.Join(data, names[0]), filepath.Join(data, names[1])); err != nil {
				g.t.Fatal(err)
			}
		}
	}
	back := []*pod{g.startEtcd(program, 0), g.startEtcd(program, 1)}
	client := g.client("rootpw", back...)
	check(g.t, client, acked)
	answer, err := client.Get(context.Background(), "/taken/", clientv3.WithPrefix())
	if err != nil || len(answer.Kvs) != 0 {
		g.t.Errorf("what was written since the takeover: got %v, %v", answer, err)
	}
}
