package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

func begin(t *testing.T) *stage {
	cfg, api, quorate := control(t)
	expandable(t, api)
	s := &stage{T: t, ground: newGround(t, api, quorate), cfg: cfg}
	s.begin()
	s.stopOp = operator(t, cfg, api.Scheme(), true)
	s.c = &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "default"}}
	s.c.Spec.Storage.ClassName = "local"
	s.c.Spec.Version = "one"
	s.c.Spec.ReplaceAfter = metav1.Duration{Duration: 5 * time.Second}
	s.c.Spec.Args = []string{"--memory=128MiB", "--level-policy=now"}
	return s
}

// member returns a pod of a member: the leader's, or another one's.
func (s *stage) member(leads bool) *corev1.Pod {
	s.Helper()
	var found *corev1.Pod
	s.until("with such a member", 20*time.Second, func(c *v1alpha1.QuorateCluster) bool {
		for _, m := range c.Status.Members {
			pod := &corev1.Pod{}
			key := client.ObjectKey{Namespace: s.c.Namespace, Name: m.Name}
			if m.Healthy && m.Leader == leads && s.api.Get(s.Context(), key, pod) == nil && pod.DeletionTimestamp == nil {
				found = pod
				return true
			}
		}
		return false
	})
	return found
}

// Ensure that a cluster lives through all that happens to it, with writes running and none of the acknowledged ones lost.
func TestOperator_life(t *testing.T) {
	s := begin(t)
	start := time.Now()
	must(t, s.api.Create(t.Context(), s.c))
	s.until("created", time.Minute, s.settled(3))
	t.Logf("created in %v", time.Since(start))
	s.connect()
	writing, stop := context.WithCancel(t.Context())
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.write(writing)
	}()
	s.scenario("pod of the leader deleted", func() {
		pod := s.member(true)
		must(t, s.api.Delete(t.Context(), pod))
		s.until("back", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
			there := &corev1.Pod{}
			return s.api.Get(t.Context(), client.ObjectKeyFromObject(pod), there) == nil && there.UID != pod.UID && s.settled(3)(c)
		})
	})
	s.scenario("process killed", func() {
		before := s.restarted()
		s.stop(string(s.member(false).UID), syscall.SIGKILL)
		s.until("back", time.Minute, func(c *v1alpha1.QuorateCluster) bool { return s.restarted() > before && s.settled(3)(c) })
	})
	s.scenario("paused, and a pod deleted meanwhile", s.pause)
	s.scenario("claim deleted by hand", s.loseClaim)
	s.scenario("node lost", s.loseNode)
	s.scenario("version rolled", s.roll)
	s.scenario("version that does not start, and back", s.undo)
	s.scenario("three members become five", func() {
		s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Members = 5 })
		s.until("of five", 2*time.Minute, s.settled(5))
	})
	s.scenario("five members become three", func() {
		s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Members = 3 })
		s.until("of three", 2*time.Minute, s.settled(3))
	})
	s.scenario("claims grow", s.resize)
	s.scenario("all nodes drained in turn", s.drain)
	s.scenario("certificates renewed", s.rotate)
	s.scenario("operator killed again and again while a version is rolled", s.interrupted)
	s.scenario("two operators that both act, while a version is rolled and members are added", s.two)
	s.scenario("pod force-deleted, and its process lives on", s.orphan)
	s.scenario("API server away for 20 seconds, and a process killed meanwhile", s.away)
	stop()
	<-written
	if missing := s.lost(); len(missing) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %.200q", len(missing), len(s.load.acked), missing)
	}
	t.Logf("%d acknowledged writes, none lost\n| scenario | seconds | failed writes | longest pause, ms |\n|---|---|---|---|\n%s",
		len(s.load.acked), strings.Join(s.results, "\n"))
}

func (s *stage) loseClaim() {
	pod := s.member(false)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}
	must(s.T, s.api.Delete(s.Context(), claim))
	s.until("replaced", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		return s.settled(3)(c) && !strings.Contains(fmt.Sprint(c.Status.Members), pod.Name)
	})
}

func (s *stage) loseNode() {
	pod := s.member(true)
	s.kill(pod.Spec.NodeName)
	s.until("replaced", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		return s.settled(3)(c) && !strings.Contains(fmt.Sprint(c.Status.Members), pod.Name)
	})
	s.Lock()
	delete(s.dead, pod.Spec.NodeName)
	s.Unlock()
	s.setReady(pod.Spec.NodeName, true)
	s.until("cleared", time.Minute, s.settled(3))
}

func (s *stage) roll() {
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Version = "two" })
	s.until("rolled", 2*time.Minute, s.settled(3))
	var pods corev1.PodList
	must(s.T, s.api.List(s.Context(), &pods))
	for i := range pods.Items {
		if image := pods.Items[i].Spec.Containers[0].Image; image != "quorate:two" {
			s.Errorf("%s has %s", pods.Items[i].Name, image)
		}
	}
}

func (s *stage) undo() {
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Version = s.broken })
	s.until("stopped at the first member that does not start", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		return c.Status.HealthyMembers == 2 && strings.Contains(c.Status.Action, "waits for its restart")
	})
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Version = "two" })
	s.until("undone", 2*time.Minute, s.settled(3))
}

func (s *stage) resize() {
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Storage.Size = resource.MustParse("9Gi") })
	s.until("grown", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		var claims corev1.PersistentVolumeClaimList
		must(s.T, s.api.List(s.Context(), &claims))
		for i := range claims.Items {
			if claims.Items[i].Spec.Resources.Requests.Storage().String() != "9Gi" {
				return false
			}
		}
		return s.settled(3)(c)
	})
}

func (s *stage) drain() {
	for i := range nodes {
		node := &corev1.Node{}
		must(s.T, s.api.Get(s.Context(), client.ObjectKey{Name: fmt.Sprintf("n%d", i+1)}, node))
		mark := func(on bool) {
			must(s.T, s.api.Get(s.Context(), client.ObjectKeyFromObject(node), node))
			from := node.DeepCopy()
			node.Spec.Unschedulable = on
			must(s.T, s.api.Patch(s.Context(), node, client.MergeFrom(from)))
		}
		mark(true)
		s.until("moved", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
			var pods corev1.PodList
			must(s.T, s.api.List(s.Context(), &pods))
			there := 0
			for j := range pods.Items {
				pod := &pods.Items[j]
				if pod.Spec.NodeName != node.Name {
					continue
				}
				there++
				for _, m := range c.Status.Members {
					if m.Name == pod.Name && m.Leader {
						return false // leadership leaves before the eviction
					}
				}
				if pod.DeletionTimestamp == nil {
					_ = s.api.SubResource("eviction").Create(s.Context(), pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{
						Name: pod.Name, Namespace: pod.Namespace}})
				}
			}
			return there == 0
		})
		mark(false)
		s.until("back", time.Minute, s.settled(3))
	}
	if c := s.get(); strings.Contains(fmt.Sprint(c.Status.Conditions), "CORDONED_ALL") {
		s.Errorf("members stay cordoned: %+v", c.Status.Conditions)
	}
}

func (s *stage) rotate() {
	name := s.member(false).Name
	key := client.ObjectKey{Namespace: s.c.Namespace, Name: name + "-tls"}
	secret := &corev1.Secret{}
	must(s.T, s.api.Get(s.Context(), key, secret))
	former, uid := string(secret.Data[corev1.TLSCertKey]), s.member(false).UID
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Exposure.Hosts = []string{"kv.example.com"} })
	s.until("renewed", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		must(s.T, s.api.Get(s.Context(), key, secret))
		return string(secret.Data[corev1.TLSCertKey]) != former && s.settled(3)(c)
	})
	if pod := s.member(false); pod.UID != uid {
		s.Errorf("a certificate restarted a member")
	}
}

func (s *stage) interrupted() {
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Version = "three" })
	for i := range 8 {
		wait, cancel := context.WithTimeout(s.Context(), time.Duration(200+300*i)*time.Millisecond)
		<-wait.Done()
		cancel()
		s.stopOp()
		s.stopOp = operator(s.T, s.cfg, s.api.Scheme(), true)
	}
	s.until("rolled", 2*time.Minute, s.settled(3))
}

// two lets a second operator act without the lease, as one does that was paused and believes to have it.
func (s *stage) two() {
	second := operator(s.T, s.cfg, s.api.Scheme(), false)
	defer second()
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Version, spec.Members = "four", 5 })
	s.until("rolled and grown", 2*time.Minute, s.settled(5))
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Members = 3 })
	s.until("of three", 2*time.Minute, s.settled(3))
}

// away lets the API server answer nothing. The operator loses its lease, and ends, as its pod does, which is made again.
func (s *stage) away() {
	pod, before := s.member(false), s.restarted()
	server := apiserver(s.T)
	must(s.T, syscall.Kill(server, syscall.SIGSTOP))
	s.stop(string(pod.UID), syscall.SIGKILL)
	wait, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	<-wait.Done()
	cancel()
	must(s.T, syscall.Kill(server, syscall.SIGCONT))
	s.stopOp()
	s.stopOp = operator(s.T, s.cfg, s.api.Scheme(), true)
	s.until("back", time.Minute, func(c *v1alpha1.QuorateCluster) bool { return s.restarted() > before && s.settled(3)(c) })
}

// apiserver is the process of the API server that this test has started.
func apiserver(t *testing.T) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/stat")
	must(t, err)
	for _, path := range found {
		text, _ := os.ReadFile(path) // one that has ended meanwhile is none
		pid, rest, ok := strings.Cut(string(text), " (kube-apiserver) ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		number, err := strconv.Atoi(pid)
		must(t, err)
		return number
	}
	t.Fatal("the API server does not run")
	return 0
}

// orphan lets a process live on without a pod, on the claim that the next pod gets.
func (s *stage) orphan() {
	pod := s.member(true)
	p := s.forget(string(pod.UID))
	must(s.T, s.api.Delete(s.Context(), pod, client.GracePeriodSeconds(0)))
	s.until("kept from a second process", time.Minute, func(*v1alpha1.QuorateCluster) bool {
		there := &corev1.Pod{}
		return s.api.Get(s.Context(), client.ObjectKeyFromObject(pod), there) == nil && len(there.Status.ContainerStatuses) > 0 &&
			there.Status.ContainerStatuses[0].State.Terminated != nil
	})
	must(s.T, syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL))
	<-p.done
	s.until("back", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		there := &corev1.Pod{}
		return s.api.Get(s.Context(), client.ObjectKeyFromObject(pod), there) == nil && there.UID != pod.UID && s.settled(3)(c)
	})
}

// Ensure that a cluster with users grows from one member, that its founder then has no flags with which it could found again, and
// that a cluster which has lost three of five nodes for ever says what is left, and goes on with that once the spec consents.
func TestOperator_quorumLoss(t *testing.T) {
	s := begin(t)
	s.c.Spec.Members = 1
	s.c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "kv-root", Users: []v1alpha1.User{{Name: "load", PasswordSecret: "load",
		Prefixes: []v1alpha1.Permission{{Prefix: "load/", Access: "ReadWrite"}}}}}
	must(t, s.api.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "load", Namespace: s.c.Namespace},
		Data: map[string][]byte{"password": []byte("secret")}}))
	must(t, s.api.Create(t.Context(), s.c))
	s.until("created", time.Minute, s.settled(1))
	s.connect()
	s.until("with users", 20*time.Second, func(c *v1alpha1.QuorateCluster) bool { return c.Status.UsersApplied != "" })
	s.forbidden()
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Members = 5 })
	s.until("of five", 2*time.Minute, s.settled(5))
	var pods corev1.PodList
	must(t, s.api.List(t.Context(), &pods))
	for i := range pods.Items {
		if args := fmt.Sprint(pods.Items[i].Spec.Containers[0].Args); strings.Contains(args, "--initial-cluster") {
			t.Errorf("%s could found a cluster of its own: %s", pods.Items[i].Name, args)
		}
	}
	writing, stop := context.WithTimeout(t.Context(), 2*time.Second)
	s.write(writing)
	stop()
	s.newRootPassword()
	s.recover()
}

// newRootPassword: the cluster gets the one that is put into the Secret, and the operator goes on to see it.
func (s *stage) newRootPassword() {
	s.Helper()
	secret, applied := &corev1.Secret{}, s.get().Status.UsersApplied
	must(s.T, s.api.Get(s.Context(), client.ObjectKey{Namespace: s.c.Namespace, Name: "kv-root"}, secret))
	secret.Data["password"] = []byte("another")
	must(s.T, s.api.Update(s.Context(), secret))
	s.until("another password of root", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		return c.Status.UsersApplied != applied && s.settled(5)(c)
	})
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
	defer cancel()
	_, err := etcdserverpb.NewAuthClient(s.load.conns[s.endpoints()[0]]).Authenticate(ctx,
		&etcdserverpb.AuthenticateRequest{Name: "root", Password: "another"})
	must(s.T, err)
}

// forbidden: no write without a user, and none outside of the user's prefix.
func (s *stage) forbidden() {
	s.Helper()
	put := func(key string) error {
		return s.any(s.Context(), func(ctx context.Context, kv etcdserverpb.KVClient) error {
			_, err := kv.Put(ctx, &etcdserverpb.PutRequest{Key: []byte(key)})
			return err
		})
	}
	if err := put("other"); status.Code(err) != codes.PermissionDenied {
		s.Errorf("a write outside of the prefix: %v", err)
	}
	must(s.T, put("load/x"))
	auth := s.c.Spec.Auth
	s.c.Spec.Auth = nil
	if err := put("load/x"); err == nil {
		s.Error("a write without a user was taken")
	}
	s.c.Spec.Auth = auth
}

func (s *stage) recover() {
	s.Helper()
	began := time.Now()
	var gone []string
	s.stopOp() // else the first is replaced before the second is gone
	gone = append(gone, s.member(true).Name)
	for _, m := range s.get().Status.Members {
		if !m.Leader && len(gone) < 3 {
			gone = append(gone, m.Name)
		}
	}
	for _, name := range gone {
		pod := &corev1.Pod{}
		must(s.T, s.api.Get(s.Context(), client.ObjectKey{Namespace: s.c.Namespace, Name: name}, pod))
		s.kill(pod.Spec.NodeName)
	}
	s.stopOp = operator(s.T, s.cfg, s.api.Scheme(), true)
	s.until("said to be lost", time.Minute, func(c *v1alpha1.QuorateCluster) bool { return c.Status.QuorumLoss != nil })
	loss := s.get().Status.QuorumLoss
	s.Logf("%+v", loss)
	_, patch, _ := strings.Cut(loss.Consent, " --type merge -p ") // as somebody does who pastes the command
	must(s.T, s.api.Patch(s.Context(), s.get(), client.RawPatch(types.MergePatchType, []byte(strings.Trim(patch, "'")))))
	s.until("recovered", 2*time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		return s.settled(5)(c) && c.Status.Recovery != nil && c.Status.Recovery.Done
	})
	s.Logf("recovered %v after three of five nodes were lost", time.Since(began))
	if st := s.get().Status; len(loss.Survivors) != 2 || len(st.Recovery.Compare) != 1 || st.Recovery.LogTerm == 0 {
		s.Errorf("the claim of the other survivor of %v was not compared: %+v", loss.Survivors, st.Recovery)
	}
	if missing := s.lost(); len(missing) > 0 {
		s.Errorf("the survivor said that it has revision %d, and lacks %.200q", loss.Revision, missing)
	}
	s.wipe() // of what it knew, the claims that a recovery left out still tell
	for _, name := range gone {
		must(s.T, s.api.Get(s.Context(), client.ObjectKey{Namespace: s.c.Namespace, Name: name}, &corev1.PersistentVolumeClaim{}))
	}
}
