package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// waiting is a container that waits.
func waiting(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason,
		Message: message}}}
}

// crashed is a container that ended, and is started again later.
func crashed(name, reason, message string) corev1.ContainerStatus {
	status := waiting(name, "CrashLoopBackOff", "back-off 40s restarting failed container")
	status.RestartCount = 3
	status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: reason, Message: message}
	return status
}

// Ensure that the status names the cause of members that do not come up, and what helps: also one that stands only in an event, or in
// the container that restores.
func TestReconcile_why(t *testing.T) {
	pending := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
		Message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims"}
	for _, row := range []struct {
		name    string
		status  corev1.PodStatus
		of      string // whose event it is
		event   string
		restore bool
		want    []string
	}{
		{"a wrong tag", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("quorate", "ImagePullBackOff",
			`Back-off pulling image "quorate:v9"`)}}, "", "", false,
			[]string{"-1: ImagePullBackOff: Back-off pulling image", "→ correct spec.image, spec.version or spec.imagePullSecrets"}},
		{"a process that ends", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{crashed("quorate", "Error",
			"{}\nquorate: --heartbeat-interval is no number\n")}}, "", "", false, []string{
			"-1: its container quorate ended (exit code 1): quorate: --heartbeat-interval is no number → kubectl logs -n ns kv-", "-1 -c quorate"}},
		{"too little memory", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{crashed("quorate", "OOMKilled", "")}}, "", "",
			false, []string{"ended (OOMKilled) → raise spec.resources.limits.memory"}},
		{"a class that is not there", corev1.PodStatus{Conditions: []corev1.PodCondition{pending}}, "claim",
			`storageclass.storage.k8s.io "fast" not found`, false,
			[]string{"no node takes its pod: 0/3 nodes", `; its claim: Failed: storageclass.storage.k8s.io "fast" not found`}},
		{"a Secret that is not there", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("quorate", "ContainerCreating",
			"")}}, "pod", `secret "mine" not found`, false, []string{`-1: Failed: secret "mine" not found`}},
		{"a variable from a Secret that is not there", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("quorate",
			"CreateContainerConfigError", `secret "s3" not found`)}}, "", "", false, []string{`secret "s3" not found → correct spec.env`}},
		{"a restore that fails", corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{crashed("restore", "Error",
			"quorate: nothing of that time is there")}, ContainerStatuses: []corev1.ContainerStatus{waiting("quorate", "PodInitializing", "")}},
			"", "", true, []string{"its container restore ended (exit code 1): quorate: nothing of that time is there", "-c restore"}},
		{"an image that is not there any more", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "quorate",
			State:                waiting("quorate", "ErrImagePull", "gone").State,
			LastTerminationState: crashed("quorate", "Error", "old").LastTerminationState}}}, "", "", false, []string{"-1: ErrImagePull: gone →"}},
		{"a process that ended and runs again", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "quorate",
			State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: "no"}}}}}, "", "",
			false, []string{"ended (exit code 2): no → kubectl logs", "-c quorate --previous"}},
		{"a restore that runs", corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "restore",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
			ContainerStatuses: []corev1.ContainerStatus{waiting("quorate", "PodInitializing", "")}}, "", "", true,
			[]string{"its container restore runs"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
				if row.restore {
					c.Spec.Restore = &v1alpha1.RestoreFrom{Place: "s3://b/p", At: "latest"}
				}
			})
			f.must(f.step(8))
			pod := f.pods()[0]
			claim := &corev1.PersistentVolumeClaim{}
			f.must(f.Get(t.Context(), client.ObjectKeyFromObject(&pod), claim))
			pod.UID, claim.UID = "pod", "claim"
			f.must(f.Update(t.Context(), &pod))
			f.must(f.Update(t.Context(), claim))
			pod.Status = row.status
			f.must(f.Status().Update(t.Context(), &pod))
			for at, text := range []string{"an older one", row.event} {
				f.must(f.Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: text[:min(len(text), 3)] + "e", Namespace: "ns"},
					Type: "Warning", Reason: "Failed", Message: text, InvolvedObject: corev1.ObjectReference{UID: types.UID(row.of)},
					LastTimestamp: metav1.NewTime(f.now.Add(time.Duration(at) * time.Second))}))
			}
			f.later(time.Minute)
			for _, want := range row.want {
				if doing := f.cluster().Status.Action; !strings.Contains(doing, want) {
					t.Errorf("doing %q lacks %q", doing, want)
				}
			}
		})
	}
}

// Ensure that a user whose Secret is absent is told.
func TestReconcile_whyUser(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) {
		c.Spec.Auth = &v1alpha1.Auth{RootPasswordSecret: "root", Users: []v1alpha1.User{{Name: "app", PasswordSecret: "app"}}}
	})
	f.must(f.step(8))
	f.group.described = &quoratepb.Cluster{ClusterId: 0xabc, Leader: 1, Epoch: "0", Settled: true}
	for i, pod := range f.pods() {
		f.group.described.Members = append(f.group.described.Members, &quoratepb.Member{Id: uint64(i + 1), Name: pod.Name,
			Role: quoratepb.Role_ROLE_VOTER, Started: true, Active: true, CaughtUp: true, Leader: i == 0})
		f.run(&pod, true)
	}
	_ = f.step(3)
	if doing := f.cluster().Status.Action; !strings.Contains(doing, "the password in Secret app") {
		t.Errorf("doing %q", doing)
	}
}
