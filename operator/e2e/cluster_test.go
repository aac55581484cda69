package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
	"github.com/quorate/quorate/operator/internal/objects"
)

// crds are those of the chart: what is tested is what is installed.
const crds = "../../deploy/charts/quorate-operator/crds"

// control starts an API server whose etcd is Quorate.
func control(t *testing.T) (*rest.Config, client.Client, string) {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("make operator runs it: it needs kube-apiserver, and Quorate under the name etcd")
	}
	known := runtime.NewScheme()
	must(t, scheme.AddToScheme(known))
	must(t, v1alpha1.AddToScheme(known))
	env := &envtest.Environment{CRDDirectoryPaths: []string{crds}, ErrorIfCRDPathMissing: true, Scheme: known,
		ControlPlaneStartTimeout: time.Minute}
	cfg, err := env.Start()
	must(t, err)
	t.Cleanup(func() { _ = env.Stop() })
	cfg.QPS = -1
	api, err := client.New(cfg, client.Options{Scheme: known})
	must(t, err)
	return cfg, api, filepath.Join(assets, "etcd")
}

// operator runs the operator until it is stopped. One that does not elect acts beside another one.
func operator(t *testing.T, cfg *rest.Config, known *runtime.Scheme, elects bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: known, Metrics: server.Options{BindAddress: "0"}, LeaderElection: elects,
		Cache: controller.Cache(), LeaderElectionID: "e2e", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		Controller: config.Controller{SkipNameValidation: new(true)}})
	must(t, err)
	metrics.Registry.Unregister(&controller.Gauges{}) // of an operator that ran in this process before
	must(t, controller.SetUp(mgr))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = mgr.Start(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func clusterOf(pod *corev1.Pod) *v1alpha1.QuorateCluster {
	return &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: pod.Labels[objects.LabelCluster], Namespace: pod.Namespace}}
}

// stage is a cluster under load.
type stage struct {
	*testing.T
	*ground
	cfg     *rest.Config
	c       *v1alpha1.QuorateCluster
	stopOp  func()
	began   time.Time
	load    *load
	results []string
}

func (s *stage) get() *v1alpha1.QuorateCluster {
	c := &v1alpha1.QuorateCluster{}
	must(s.T, client.IgnoreNotFound(s.api.Get(s.Context(), client.ObjectKeyFromObject(s.c), c)))
	return c
}

// change changes the spec.
func (s *stage) change(how func(*v1alpha1.QuorateClusterSpec)) {
	s.Helper()
	c := s.get()
	from := c.DeepCopy()
	how(&c.Spec)
	must(s.T, s.api.Patch(s.Context(), c, client.MergeFrom(from)))
}

// until waits for something to be so.
func (s *stage) until(what string, within time.Duration, is func(c *v1alpha1.QuorateCluster) bool) {
	s.Helper()
	timer := time.NewTimer(within)
	tick := time.NewTicker(100 * time.Millisecond)
	defer timer.Stop()
	defer tick.Stop()
	for {
		c := s.get()
		if is(c) {
			return
		}
		select {
		case <-tick.C:
		case <-timer.C:
			s.fail(what, c)
		}
	}
}

func (s *stage) fail(what string, c *v1alpha1.QuorateCluster) {
	s.Helper()
	var pods corev1.PodList
	_ = s.api.List(context.Background(), &pods)
	text := ""
	for i := range pods.Items {
		p := &pods.Items[i]
		text += fmt.Sprintf("\n  %s on %s deleted=%v %+v", p.Name, p.Spec.NodeName, p.DeletionTimestamp != nil, p.Status.ContainerStatuses)
	}
	if keep := os.Getenv("QUORATE_OPERATOR_KEEP"); keep != "" {
		_ = os.CopyFS(keep, os.DirFS(s.dir))
	}
	s.Fatalf("not %s: doing %q\nconditions %+v\nmembers %+v%s", what, c.Status.Action, c.Status.Conditions, c.Status.Members, text)
}

// settled: so many members work, none is left over, and the operator has nothing to do.
func (s *stage) settled(members int) func(*v1alpha1.QuorateCluster) bool {
	return func(c *v1alpha1.QuorateCluster) bool {
		var pods corev1.PodList
		var claims corev1.PersistentVolumeClaimList
		must(s.T, s.api.List(s.Context(), &pods))
		must(s.T, s.api.List(s.Context(), &claims))
		return s.isSettled(c, pods.Items, claims.Items, members)
	}
}

// isSettled finds what belongs to a cluster among the pods and claims of all.
func (g *ground) isSettled(c *v1alpha1.QuorateCluster, pods []corev1.Pod, claims []corev1.PersistentVolumeClaim, members int) bool {
	live, kept := 0, 0
	for i := range claims {
		if claims[i].Labels[objects.LabelUID] == string(c.UID) {
			kept++
		}
	}
	for i := range pods {
		if pods[i].Labels[objects.LabelUID] == string(c.UID) && g.lives(&pods[i]) {
			if pods[i].Annotations[objects.AnnotationTemplate] != objects.Template(c) || !g.serves(&pods[i]) {
				return false
			}
			live++
		}
	}
	return c.Status.ObservedGeneration == c.Generation && c.Status.Action == "" && int(c.Status.HealthyMembers) == members &&
		len(c.Status.Members) == members && live == members && kept-len(c.Status.Dropped) >= members
}

// serves tells whether the process of a pod is ready.
func (g *ground) serves(pod *corev1.Pod) bool {
	g.Lock()
	defer g.Unlock()
	p := g.procs[string(pod.UID)]
	return p != nil && !p.ended() && p.ready
}

// lives leaves out what a dead node holds.
func (g *ground) lives(pod *corev1.Pod) bool {
	g.Lock()
	defer g.Unlock()
	return !g.dead[pod.Spec.NodeName]
}

// scenario runs one, and notes what clients saw.
func (s *stage) scenario(name string, run func()) {
	s.Helper()
	s.load.reset()
	s.began = time.Now()
	run()
	failed, longest := s.load.seen()
	s.results = append(s.results, fmt.Sprintf("| %s | %.1f | %d | %d |", name, time.Since(s.began).Seconds(), failed, longest.Milliseconds()))
	s.Log(s.results[len(s.results)-1])
	if failed > 0 {
		s.Log(s.load.reason())
	}
}

func expandable(t *testing.T, api client.Client) {
	must(t, api.Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "e2e",
		AllowVolumeExpansion: new(true)}))
}

func init() { ctrl.SetLogger(zap.New(zap.WriteTo(logs{}))) }

// logs drops lines unless the test is told to show them.
type logs struct{}

func (logs) Write(b []byte) (int, error) {
	if os.Getenv("QUORATE_OPERATOR_LOG") != "" && !strings.Contains(string(b), "Starting") {
		_, _ = os.Stderr.Write(b)
	}
	return len(b), nil
}
