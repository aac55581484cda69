package controller_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/members"
)

// group is a cluster that answers as the test wants.
type group struct {
	described *quoratepb.Cluster
	findings  []doctor.Finding
	answers   []decide.Answer
	apart     []string
	jobs      []*quoratepb.Job
	gauges    []members.Gauge
	asked     []decide.Action
	users     []members.Users
	backup    []members.Backup
	id        uint64 // that the operator asked for last
	newest    decide.Epoch
	seats     []members.Seat
	access    members.Access
	refuses   error // of users
	refused   bool  // no password counts
}

func (g *group) Look(_ context.Context, cluster uint64, newest decide.Epoch) *members.View {
	g.id, g.newest = cluster, newest
	return &members.View{Described: g.described, Findings: g.findings, Answers: g.answers, Apart: g.apart,
		Jobs: g.jobs, Refused: g.refused}
}

func (g *group) Ask(_ context.Context, _ *members.View, a decide.Action, _ string) error {
	g.asked = append(g.asked, a)
	return nil
}

func (g *group) Users(_ context.Context, u members.Users) error {
	g.users = append(g.users, u)
	return g.refuses
}

func (g *group) Backup(_ context.Context, b *members.Backup) (*members.BackupState, error) {
	g.backup = append(g.backup, *b)
	return &members.BackupState{On: b.Place != "", Place: b.Place, RestorableRevision: 7}, nil
}

func (g *group) Gauges(context.Context) []members.Gauge { return g.gauges }

func (g *group) Close() {}

// fixture is the operator with an API server that is made up.
type fixture struct {
	*testing.T
	client.Client
	group *group
	now   time.Time
	r     *controller.Clusters
	key   types.NamespacedName

	before    *quoratepb.Cluster // what the leader told before a loss
	allVoters []corev1.Pod       // and the pods then
}

func start(t *testing.T, hooks interceptor.Funcs, change func(*v1alpha1.QuorateCluster)) *fixture {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	c := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", UID: "uid-1"}}
	c.Spec.Members, c.Spec.Image, c.Spec.TLS.Mode = 3, "quorate", "None"
	c.Spec.ReplaceAfter = metav1.Duration{Duration: 30 * time.Second}
	c.Spec.TLS.Validity = metav1.Duration{Duration: 90 * 24 * time.Hour}
	if change != nil {
		change(c)
	}
	uid := func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }
	api := fake.NewClientBuilder().WithIndex(&corev1.Event{}, "involvedObject.uid", uid).WithScheme(known).WithObjects(c).WithInterceptorFuncs(hooks).
		WithStatusSubresource(c, &v1alpha1.QuorateBackup{}, &v1alpha1.QuorateRestore{}, &corev1.Pod{}).Build()
	f := &fixture{T: t, Client: api, group: &group{}, now: time.Unix(1e9, 0), key: client.ObjectKeyFromObject(c)}
	f.r = &controller.Clusters{Client: api, Read: api, Events: events.NewFakeRecorder(1000),
		Now: func() time.Time { return f.now },
		Open: func(seats []members.Seat, a members.Access) (controller.Cluster, error) {
			f.group.seats, f.group.access = seats, a
			return f.group, nil
		}}
	return f
}

// step reconciles so many times.
func (f *fixture) step(times int) (err error) {
	f.Helper()
	for range times {
		_, err = f.r.Reconcile(f.Context(), ctrl.Request{NamespacedName: f.key})
	}
	return err
}

// later lets time pass between two looks.
func (f *fixture) later(d time.Duration) {
	f.Helper()
	f.must(f.step(1))
	f.now = f.now.Add(d)
	f.must(f.step(1))
}

func (f *fixture) cluster() *v1alpha1.QuorateCluster {
	f.Helper()
	c := &v1alpha1.QuorateCluster{}
	f.must(f.Get(f.Context(), f.key, c))
	return c
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) pods() []corev1.Pod {
	f.Helper()
	var all corev1.PodList
	f.must(f.List(f.Context(), &all))
	return all.Items
}

// found lets the cluster begin, with pods that run.
func (f *fixture) found() {
	f.Helper()
	f.must(f.step(8))
	f.group.described = &quoratepb.Cluster{ClusterId: 0xabc, Leader: 1, Term: 1, Epoch: "0", Settled: true}
	for i, pod := range f.pods() {
		f.group.described.Members = append(f.group.described.Members, &quoratepb.Member{Id: uint64(i + 1), Name: pod.Name,
			Role: quoratepb.Role_ROLE_VOTER, Started: true, Active: true, CaughtUp: true, Leader: i == 0, Build: "1.1.0"})
		f.run(&pod, true)
	}
	f.group.described.Strength = &quoratepb.Strength{Voters: 3, Active: 3, Tolerates: 1}
	f.must(f.step(3))
	if c := f.cluster(); c.Status.ClusterID != "abc" || c.Status.HealthyMembers != 3 || c.Status.Action != "" {
		f.Fatalf("the cluster does not begin: %+v", c.Status)
	}
}

func (f *fixture) run(pod *corev1.Pod, ready bool) {
	f.Helper()
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1",
		ContainerStatuses: []corev1.ContainerStatus{{Name: "quorate", Ready: ready, State: running}},
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}}
	f.must(f.Status().Update(f.Context(), pod))
}

// survivor is what the last voter tells.
func (f *fixture) survivor(name string, pods []corev1.Pod) []decide.Answer {
	var voters []string
	for i := range pods {
		voters = append(voters, pods[i].Name)
	}
	return []decide.Answer{{Member: name, Term: 3, Index: 9, Revision: 5, Voters: voters, Members: voters}}
}
