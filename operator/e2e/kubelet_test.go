package e2e

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/internal/objects"
)

// ground plays nodes, the scheduler, and the controllers of disruption budgets and claims.
type ground struct {
	sync.Mutex
	t        *testing.T
	api      client.Client
	dir      string // of claims, secrets and hosts
	quorate  string
	broken   string // a tag of the image that does not start
	dead     map[string]bool
	claimsAt map[string]place  // of each claim, by UID
	procs    map[string]*proc  // by UID of the pod
	others   map[string]string // the UID of each claim, by its namespace and name
	orphans  []*proc
	next     int
	restarts int
	every    time.Duration // between two looks
	patience time.Duration // for the answer of a process that is asked whether it is ready
}

// place is where a claim is, and of which cluster.
type place struct{ node, cluster string }

type proc struct {
	cmd     *exec.Cmd
	address string
	host    string
	log     string
	done    chan struct{}
	asked   bool // to end
	ready   bool
	since   time.Time
}

func (p *proc) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

const nodes = 5

func newGround(t *testing.T, api client.Client, quorate string) *ground {
	g := &ground{t: t, api: api, dir: t.TempDir(), quorate: quorate, broken: "broken", dead: map[string]bool{},
		claimsAt: map[string]place{}, procs: map[string]*proc{}, every: 100 * time.Millisecond, patience: 300 * time.Millisecond}
	g.addNodes(1, nodes)
	must(t, os.WriteFile(g.hosts(), []byte("127.0.0.1 localhost\n"), 0o644))
	return g
}

// addNodes adds nodes from one number to another.
func (g *ground) addNodes(first, last int) {
	for i := first; i <= last; i++ {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}
		must(g.t, g.api.Create(g.t.Context(), node))
		g.setReady(node.Name, true)
	}
}

func (g *ground) hosts() string { return filepath.Join(g.dir, "hosts") }

func (g *ground) setReady(name string, ready bool) {
	node := &corev1.Node{}
	must(g.t, g.api.Get(g.t.Context(), client.ObjectKey{Name: name}, node))
	status := corev1.ConditionTrue
	if !ready {
		status = corev1.ConditionUnknown
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Now(),
		LastHeartbeatTime: metav1.Now()}}
	must(g.t, g.api.Status().Update(g.t.Context(), node))
}

// kill ends a node with all that runs on it.
func (g *ground) kill(node string) {
	g.Lock()
	g.dead[node] = true
	g.Unlock()
	var pods corev1.PodList
	must(g.t, g.api.List(g.t.Context(), &pods))
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == node {
			g.stop(string(pods.Items[i].UID), syscall.SIGKILL)
		}
	}
	g.setReady(node, false)
}

func (g *ground) stop(uid string, signal syscall.Signal) {
	g.Lock()
	p := g.procs[uid]
	g.Unlock()
	if p != nil && !p.ended() {
		_ = syscall.Kill(-p.cmd.Process.Pid, signal)
	}
}

// forget lets the process of a pod live on without it.
func (g *ground) forget(uid string) *proc {
	g.Lock()
	defer g.Unlock()
	p := g.procs[uid]
	g.orphans = append(g.orphans, p)
	delete(g.procs, uid)
	return p
}

func (g *ground) restarted() int {
	g.Lock()
	defer g.Unlock()
	return g.restarts
}

// begin plays until the test ends.
func (g *ground) begin() {
	playing, done := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.run(playing)
	}()
	g.t.Cleanup(func() {
		done()
		<-ended
	})
}

// run plays until it is told to end, and kills all processes then.
func (g *ground) run(ctx context.Context) {
	tick := time.NewTicker(g.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			g.Lock()
			defer g.Unlock()
			for _, p := range append(slices.Collect(maps.Values(g.procs)), g.orphans...) {
				_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
				<-p.done
			}
			return
		case <-tick.C:
			g.step(ctx)
		}
	}
}

func (g *ground) step(ctx context.Context) {
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	var secrets corev1.SecretList
	if g.api.List(ctx, &pods) != nil || g.api.List(ctx, &claims) != nil || g.api.List(ctx, &secrets) != nil {
		return
	}
	g.probe()
	known := map[client.ObjectKey]*corev1.Secret{}
	for i := range secrets.Items {
		known[client.ObjectKeyFromObject(&secrets.Items[i])] = &secrets.Items[i]
	}
	used := map[string]bool{}
	byName := map[string]*corev1.PersistentVolumeClaim{}
	others := map[string]string{}
	for i := range claims.Items {
		byName[claims.Items[i].Name] = &claims.Items[i]
		others[claims.Items[i].Namespace+"/"+claims.Items[i].Name] = string(claims.Items[i].UID)
	}
	g.Lock()
	g.others = others
	g.Unlock()
	for i := range pods.Items {
		pod := &pods.Items[i]
		used[pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName] = true
		claim := byName[pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName]
		switch {
		case pod.Spec.NodeName == "" && claim != nil && pod.DeletionTimestamp == nil:
			g.bind(ctx, pod, claim)
		case pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil:
			_ = g.api.Delete(ctx, pod, client.GracePeriodSeconds(0))
		case pod.Spec.NodeName != "":
			g.play(ctx, pod, claim, known)
		}
	}
	for _, claim := range byName {
		if claim.DeletionTimestamp != nil && !used[claim.Name] {
			claim.Finalizers = nil
			if g.api.Update(ctx, claim) == nil {
				must(g.t, os.RemoveAll(filepath.Join(g.dir, string(claim.UID))))
				g.Lock()
				delete(g.claimsAt, string(claim.UID))
				g.Unlock()
			}
		}
	}
	g.budgets(ctx, pods.Items)
}

// bind gives a pod a node: that of its claim, if that has one; else one with few claims of the cluster, and few claims.
func (g *ground) bind(ctx context.Context, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) {
	g.Lock()
	defer g.Unlock()
	var all corev1.NodeList
	if g.api.List(ctx, &all) != nil {
		return
	}
	own, taken := map[string]int{}, map[string]int{}
	cluster := claim.Labels[objects.LabelUID]
	for _, at := range g.claimsAt {
		taken[at.node]++
		if at.cluster == cluster {
			own[at.node]++
		}
	}
	at := g.claimsAt[string(claim.UID)].node
	best := ""
	for i := range all.Items {
		node := &all.Items[i]
		if node.Spec.Unschedulable || g.dead[node.Name] || at != "" && at != node.Name {
			continue
		}
		if best == "" || cmp.Or(cmp.Compare(own[node.Name], own[best]), cmp.Compare(taken[node.Name], taken[best])) < 0 {
			best = node.Name
		}
	}
	if best == "" {
		return
	}
	g.claimsAt[string(claim.UID)] = place{best, cluster}
	_ = g.api.SubResource("binding").Create(ctx, pod, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name,
		Namespace: pod.Namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: best}})
	if claim.Status.Phase != corev1.ClaimBound {
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Capacity = claim.Spec.Resources.Requests
		_ = g.api.Status().Update(ctx, claim)
	}
}

// play runs the process of a pod, and tells how it is.
func (g *ground) play(ctx context.Context, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim,
	secrets map[client.ObjectKey]*corev1.Secret) {
	g.Lock()
	defer g.Unlock()
	if g.dead[pod.Spec.NodeName] {
		return
	}
	p := g.procs[string(pod.UID)]
	if pod.DeletionTimestamp != nil {
		if p == nil || p.ended() {
			_ = g.api.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
			return
		}
		if !p.asked {
			p.asked, p.ready = true, false
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		}
		return
	}
	g.secrets(pod, secrets)
	again := pod.Spec.RestartPolicy != corev1.RestartPolicyNever
	if claim != nil && (p == nil || p.ended() && again && time.Since(p.since) > 2*time.Second) {
		if !strings.HasSuffix(pod.Spec.Containers[0].Image, ":"+g.broken) {
			p = g.start(pod, claim, p)
		}
	}
	g.tell(ctx, pod, p)
}

func (g *ground) start(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, former *proc) *proc {
	p := &proc{done: make(chan struct{}), host: objects.Host(clusterOf(pod), pod.Labels[objects.LabelMember]), since: time.Now()}
	if former == nil {
		g.next++
		// another process of tests beside this one has other addresses
		p.address = fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()%128, g.next/200, 1+g.next%200)
	} else {
		p.address = former.address
		g.restarts++
	}
	data := filepath.Join(g.dir, string(claim.UID))
	must(g.t, os.MkdirAll(data, 0o755))
	p.log = filepath.Join(g.dir, pod.Name+"-"+string(pod.UID)[:8]+".log")
	g.procs[string(pod.UID)] = p
	g.writeHosts()
	words := []string{"$(POD_IP)", p.address, "/var/lib/quorate", data, "/etc/quorate/tls", g.secretDir(pod)}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		if at := g.others[pod.Namespace+"/"+filepath.Base(mount.MountPath)]; at != "" && strings.HasPrefix(mount.Name, "survivor-") {
			words = append(words, mount.MountPath, filepath.Join(g.dir, at))
		}
	}
	replace := strings.NewReplacer(words...)
	args := strings.Split(replace.Replace(strings.Join(pod.Spec.Containers[0].Args, "\n")), "\n")
	for _, init := range pod.Spec.InitContainers {
		initial := strings.Split(replace.Replace(strings.Join(init.Args, "\n")), "\n")
		if out, err := exec.Command(g.quorate, initial...).CombinedOutput(); err != nil {
			_ = os.WriteFile(p.log, out, 0o644)
			args = []string{"version", "--the-init-container-failed"}
		}
	}
	alone := strings.NewReplacer(",http://127.0.0.1:2379", "", ",https://127.0.0.1:2379", "")
	for i := range args { // all pods share this machine's loopback address, so none listens there
		args[i] = alone.Replace(args[i])
	}
	script := `mount --make-rprivate / && mount --bind "$1" /etc/hosts && shift && exec "$@"`
	p.cmd = exec.Command("unshare", append([]string{"-m", "sh", "-c", script, "sh", g.hosts(), g.quorate}, args...)...)
	out, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(g.t, err)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	must(g.t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		out.Close()
		close(p.done)
	}()
	return p
}

// writeHosts is the DNS: names of members that have a process, and that of the Service of members.
func (g *ground) writeHosts() {
	text := "127.0.0.1 localhost\n"
	for _, p := range g.procs {
		if !p.ended() {
			_, service, _ := strings.Cut(p.host, ".")
			text += fmt.Sprintf("%s %s %s\n", p.address, p.host, service)
		}
	}
	out, err := os.OpenFile(g.hosts(), os.O_WRONLY, 0)
	must(g.t, err)
	defer out.Close()
	_, err = out.WriteAt([]byte(text), 0) // processes read it meanwhile, and must not find it empty
	must(g.t, err)
	must(g.t, out.Truncate(int64(len(text))))
}

func (g *ground) secretDir(pod *corev1.Pod) string {
	return filepath.Join(g.dir, "tls-"+string(pod.UID))
}

// secrets writes the files of the pod's Secret, and again when it changes.
func (g *ground) secrets(pod *corev1.Pod, known map[client.ObjectKey]*corev1.Secret) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		secret := known[client.ObjectKey{Namespace: pod.Namespace, Name: volume.Secret.SecretName}]
		if secret == nil {
			continue
		}
		must(g.t, os.MkdirAll(g.secretDir(pod), 0o700))
		for name, data := range secret.Data {
			path := filepath.Join(g.secretDir(pod), name)
			if there, err := os.ReadFile(path); err != nil || string(there) != string(data) {
				must(g.t, os.WriteFile(path+".new", data, 0o600))
				must(g.t, os.Rename(path+".new", path))
			}
		}
	}
}

// probe asks all processes at once whether they are ready.
func (g *ground) probe() {
	g.Lock()
	asked := slices.DeleteFunc(slices.Collect(maps.Values(g.procs)), (*proc).ended)
	g.Unlock()
	quick := http.Client{Timeout: g.patience}
	var all sync.WaitGroup
	for _, p := range asked {
		all.Go(func() {
			answer, err := quick.Get("http://" + p.address + ":2381/readyz")
			if err == nil {
				_, _ = io.Copy(io.Discard, answer.Body) // else the connection is not used again
				answer.Body.Close()
			}
			g.Lock()
			defer g.Unlock()
			p.ready = err == nil && answer.StatusCode == http.StatusOK && !p.asked
		})
	}
	all.Wait()
}

// tell writes the status of a pod, if it changed.
func (g *ground) tell(ctx context.Context, pod *corev1.Pod, p *proc) {
	status := corev1.PodStatus{Phase: corev1.PodPending}
	container := corev1.ContainerStatus{Name: "quorate", Image: pod.Spec.Containers[0].Image}
	ready := corev1.ConditionFalse
	switch {
	case p == nil:
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
	case p.ended():
		log, _ := os.ReadFile(p.log)
		status.Phase = corev1.PodRunning
		state := &corev1.ContainerStateTerminated{ExitCode: int32(p.cmd.ProcessState.ExitCode()),
			Message: string(log[max(0, len(log)-1000):])}
		if container.State.Terminated = state; pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			status.Phase = corev1.PodSucceeded
			if state.ExitCode != 0 {
				status.Phase = corev1.PodFailed
			}
		}
		status.PodIP = p.address
	default:
		status.Phase, status.PodIP = corev1.PodRunning, p.address
		container.State.Running = &corev1.ContainerStateRunning{}
		if container.Ready = p.ready; container.Ready {
			ready = corev1.ConditionTrue
		}
	}
	status.PodIPs = nil
	status.ContainerStatuses = []corev1.ContainerStatus{container}
	status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	if key := fmt.Sprint(status); pod.Annotations["e2e"] != key {
		pod.Status = status
		if g.api.Status().Update(ctx, pod) == nil { // the note goes last: what is refused for another version is told again
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "e2e", key)
			_ = g.api.Update(ctx, pod)
		}
	}
}

// budgets plays the controller of disruption budgets.
func (g *ground) budgets(ctx context.Context, pods []corev1.Pod) {
	var all policyv1.PodDisruptionBudgetList
	if g.api.List(ctx, &all) != nil {
		return
	}
	for i := range all.Items {
		b := &all.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		must(g.t, err)
		healthy := int32(0)
		for j := range pods {
			pod := &pods[j]
			if selector.Matches(labels.Set(pod.Labels)) && pod.DeletionTimestamp == nil && len(pod.Status.Conditions) > 0 &&
				pod.Status.Conditions[0].Status == corev1.ConditionTrue {
				healthy++
			}
		}
		status := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, CurrentHealthy: healthy,
			DesiredHealthy: b.Spec.MinAvailable.IntVal, DisruptionsAllowed: max(0, healthy-b.Spec.MinAvailable.IntVal), ExpectedPods: healthy}
		if b.Status.CurrentHealthy != status.CurrentHealthy || b.Status.DisruptionsAllowed != status.DisruptionsAllowed ||
			b.Status.ObservedGeneration != status.ObservedGeneration {
			b.Status = status
			_ = g.api.Status().Update(ctx, b)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
