package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
)

var clusters = flag.Int("clusters", 0, "how many clusters of three members TestOperator_thirty makes at once; 0: none")

// cheap are the arguments of members that docs/kubernetes-operator.md has for many small clusters.
var cheap = []string{"--memory=128MiB", "--heartbeat-interval=500", "--election-timeout=5000", "--level-policy=now"}

const (
	each = 3 // members of a cluster
	// mostMemory is what the members of thirty clusters may have together, as PSS.
	mostMemory = 4 << 30
	writePause = 400 * time.Millisecond
	steadyFor  = 20 * time.Second
)

// fleet is many clusters of one operator, which is a process of its own.
type fleet struct {
	*testing.T
	*ground
	all      []*stage
	operator int // its process
	log      string
	peak     usage // of members, while nothing but they ran or while something was done
	results  []string
}

// newFleet has so many clusters that are not created yet, three in a namespace.
func newFleet(t *testing.T, number int) *fleet {
	cfg, api, quorate := control(t)
	expandable(t, api)
	f := &fleet{T: t, ground: newGround(t, api, quorate)}
	f.every, f.patience = time.Second, 2*time.Second
	f.addNodes(nodes+1, 2*nodes)
	f.begin()
	f.startOperator(cfg, filepath.Join(filepath.Dir(quorate), "quorate-operator"))
	for i := range number {
		space := fmt.Sprintf("space-%d", i/3)
		if i%3 == 0 {
			must(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}))
		}
		s := &stage{T: t, ground: f.ground, cfg: cfg}
		s.c = &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kv-%d", i%3), Namespace: space}}
		s.c.Spec.Storage.ClassName, s.c.Spec.Version, s.c.Spec.Args = "local", "one", cheap
		s.c.Spec.ReplaceAfter = metav1.Duration{Duration: 10 * time.Second}
		f.all = append(f.all, s)
	}
	return f
}

// startOperator runs the operator's program until the test ends.
func (f *fleet) startOperator(cfg *rest.Config, program string) {
	file := clientcmdapi.NewConfig()
	file.Clusters["e2e"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	file.AuthInfos["e2e"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	file.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "e2e"}
	file.CurrentContext = "e2e"
	path := filepath.Join(f.dir, "kubeconfig")
	must(f.T, clientcmd.WriteToFile(*file, path))
	f.log = filepath.Join(f.dir, "operator.log")
	out, err := os.Create(f.log)
	must(f.T, err)
	cmd := exec.Command(program, "--kubeconfig="+path, "--leader-election-namespace=default", "--metrics-bind-address=0",
		"--health-probe-bind-address=0")
	cmd.Stdout, cmd.Stderr = out, out
	must(f.T, cmd.Start())
	f.operator = cmd.Process.Pid
	f.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		out.Close()
	})
}

// members are the processes of all clusters.
func (f *fleet) members() (pids []int) {
	f.Lock()
	defer f.Unlock()
	for _, p := range f.procs {
		if !p.ended() {
			pids = append(pids, p.cmd.Process.Pid)
		}
	}
	return pids
}

// look notes what members take.
func (f *fleet) look() usage {
	now := usageOf(f.members())
	if now.pss > f.peak.pss {
		f.peak = now
	}
	return now
}

// until waits until all clusters are so.
func (f *fleet) until(what string, within time.Duration,
	is func(c *v1alpha1.QuorateCluster, pods []corev1.Pod, claims []corev1.PersistentVolumeClaim) bool) {
	f.Helper()
	timer := time.NewTimer(within)
	tick := time.NewTicker(time.Second)
	defer timer.Stop()
	defer tick.Stop()
	for {
		var there v1alpha1.QuorateClusterList
		var pods corev1.PodList
		var claims corev1.PersistentVolumeClaimList
		must(f.T, f.api.List(f.Context(), &pods))
		must(f.T, f.api.List(f.Context(), &claims))
		must(f.T, f.api.List(f.Context(), &there))
		late := ""
		for i := range there.Items {
			if c := &there.Items[i]; !is(c, pods.Items, claims.Items) {
				late += fmt.Sprintf("\n  %s/%s: %d of %d members, doing %q", c.Namespace, c.Name, c.Status.HealthyMembers,
					len(c.Status.Members), c.Status.Action)
			}
		}
		f.look()
		if late == "" && len(there.Items) == len(f.all) {
			return
		}
		select {
		case <-tick.C:
		case <-timer.C:
			log, _ := os.ReadFile(f.log)
			if keep := os.Getenv("QUORATE_OPERATOR_KEEP"); keep != "" {
				_ = os.CopyFS(keep, os.DirFS(f.dir))
			}
			f.Fatalf("not %s after %v:%s\nthe operator said last\n%s", what, within, late, log[max(0, len(log)-3000):])
		}
	}
}

// settled: three members of each work, as the spec wants them, and the operator has nothing to do.
func (f *fleet) settled(c *v1alpha1.QuorateCluster, pods []corev1.Pod, claims []corev1.PersistentVolumeClaim) bool {
	return f.isSettled(c, pods, claims, each)
}

func available(c *v1alpha1.QuorateCluster, _ []corev1.Pod, _ []corev1.PersistentVolumeClaim) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, controller.Available)
}

// scenario runs one, and notes what clients saw and what it took.
func (f *fleet) scenario(name string, run func()) {
	f.Helper()
	for _, s := range f.all {
		s.load.reset()
	}
	began, operator := time.Now(), usageOf([]int{f.operator})
	run()
	took, after := time.Since(began), usageOf([]int{f.operator})
	failed, longest, of := 0, time.Duration(0), ""
	for _, s := range f.all {
		n, pause := s.load.seen()
		if failed += n; pause > longest {
			longest, of = pause, s.c.Namespace+"/"+s.c.Name
		}
		if n > 0 {
			f.Logf("%s/%s: %d writes failed: %v", s.c.Namespace, s.c.Name, n, s.load.reason())
		}
	}
	now := f.look()
	f.results = append(f.results, fmt.Sprintf("| %s | %.1f | %d | %.1f | %d | %d | %.2f |", name, took.Seconds(), failed,
		longest.Seconds(), now.pss>>20, after.pss>>20, cores(operator, after, took)))
	f.Logf("%s\nlongest pause in %s; members: %v; operator: %v", f.results[len(f.results)-1], of, now, after)
}

// load lets a client write to each cluster until it is stopped.
func (f *fleet) load() (stop func()) {
	writing, cancel := context.WithCancel(f.Context())
	var all sync.WaitGroup
	for _, s := range f.all {
		s.connect()
		s.load.pause = writePause
		all.Go(func() { s.write(writing) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// rest lets clients write, and tells what members need for it.
func (f *fleet) rest() {
	before, began := f.look(), time.Now()
	wait, cancel := context.WithTimeout(f.Context(), steadyFor)
	defer cancel()
	<-wait.Done()
	f.Logf("members keep %.2f processors busy", cores(before, f.look(), time.Since(began)))
}

func (f *fleet) roll() {
	for _, s := range f.all {
		s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Version = "two" })
	}
	f.until("rolled", 4*time.Minute, f.settled)
	var pods corev1.PodList
	must(f.T, f.api.List(f.Context(), &pods))
	for i := range pods.Items {
		if image := pods.Items[i].Spec.Containers[0].Image; !strings.HasSuffix(image, ":two") {
			f.Errorf("%s has %s", pods.Items[i].Name, image)
		}
	}
}

// loseNode lets a node die with all members on it, and comes back once each of their clusters has another member.
func (f *fleet) loseNode() {
	const node = "n1"
	var there v1alpha1.QuorateClusterList
	must(f.T, f.api.List(f.Context(), &there))
	hit, led := 0, 0
	for i := range there.Items {
		for _, m := range there.Items[i].Status.Members {
			if m.Node == node {
				hit++
				if m.Leader {
					led++
				}
			}
		}
	}
	if hit == 0 {
		f.Fatalf("%s has no members", node)
	}
	f.Logf("%s has %d members, of which %d lead", node, hit, led)
	f.kill(node)
	f.until("replaced", 3*time.Minute, func(c *v1alpha1.QuorateCluster, pods []corev1.Pod, claims []corev1.PersistentVolumeClaim) bool {
		for i := range c.Status.Members {
			if c.Status.Members[i].Node == node {
				return false
			}
		}
		return f.settled(c, pods, claims)
	})
	f.Lock()
	delete(f.dead, node)
	f.Unlock()
	f.setReady(node, true)
}

// Ensure that thirty clusters, created at once on a machine of two processors, all come up, roll a version at once and survive a
// node, that no acknowledged write is lost, and that all members together stay below 4 GiB.
func TestOperator_thirty(t *testing.T) {
	if *clusters == 0 {
		t.Skip("make operator-thirty runs it: it takes two processors for minutes")
	}
	f := newFleet(t, *clusters)
	began := time.Now()
	for _, s := range f.all {
		must(t, f.api.Create(t.Context(), s.c))
	}
	f.until("available", 4*time.Minute, available)
	t.Logf("all %d are available after %v", len(f.all), time.Since(began))
	f.until("created", 2*time.Minute, f.settled)
	t.Logf("all have their members after %v; %v; operator: %v", time.Since(began), f.look(), usageOf([]int{f.operator}))
	stop := f.load()
	f.scenario("nothing but writes", f.rest)
	f.scenario("version rolled in all at once", f.roll)
	f.scenario("node lost", f.loseNode)
	f.until("cleared", time.Minute, f.settled)
	stop()
	acked := 0
	for _, s := range f.all {
		acked += len(s.load.acked)
		if missing := s.lost(); len(missing) > 0 || len(s.load.acked) == 0 {
			t.Errorf("%s/%s: %d of %d acknowledged writes are lost: %.200q", s.c.Namespace, s.c.Name, len(missing),
				len(s.load.acked), missing)
		}
	}
	if f.peak.pss > mostMemory {
		t.Errorf("members took %v, more than %d MiB", f.peak, mostMemory>>20)
	}
	t.Logf("%d acknowledged writes; members at most: %v\n| scenario | seconds | failed writes | longest pause, s | PSS of members, MiB "+
		"| PSS of the operator, MiB | its processors |\n|---|---|---|---|---|---|---|\n%s", acked, f.peak, strings.Join(f.results, "\n"))
}
