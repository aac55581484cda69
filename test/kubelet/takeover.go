package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// formerVersions are those of etcd whose directories are taken over. ./run builds them.
var formerVersions = []string{"3.5.35", "3.6.16", "3.7.3"}

// formerChart makes what the former chart of etcd makes: its templates are written for this test.
//
//go:embed former former/templates/_helpers.tpl
var formerChart embed.FS

// former is a release of the former chart, which the chart quorate takes over.
type former struct{ version string }

const (
	formerRelease = "shop"
	formerSet     = formerRelease + "-etcd"
)

func (s former) image() string { return "etcd:" + s.version }

func (s former) missing(g *ground) string {
	if _, ok := g.images[s.image()]; !ok {
		return "-image " + s.image() + "=PATH"
	}
	return g.helmMissing(chartName)
}

// install installs the release, and turns authentication on as the former chart's scripts do.
func (s former) install(ctx context.Context, c *cluster, class string) error {
	directory := filepath.Join(c.directory, c.namespace+".former")
	if err := unpack(formerChart, "former", directory); err != nil {
		return err
	}
	c.access.endpoints = []string{fmt.Sprintf("http://%s.%s.svc.cluster.local:2379", formerSet, c.namespace)}
	if err := c.helm(ctx, "install", formerRelease, directory, "-n", c.namespace, "--wait", "--timeout", "3m",
		"--set", "image.tag="+s.version+",persistence.size=1Gi,persistence.storageClass="+class); err != nil {
		return err
	}
	secret, err := c.plane.Client.CoreV1().Secrets(c.namespace).Get(ctx, formerSet, metav1.GetOptions{})
	if err != nil {
		return err
	}
	client, err := c.access.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	c.access.user, c.access.password = "root", string(secret.Data["etcd-root-password"])
	call, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, added := client.UserAdd(call, c.access.user, c.access.password)
	_, granted := client.UserGrantRole(call, c.access.user, "root")
	_, enabled := client.AuthEnable(call)
	return errors.Join(added, granted, enabled)
}

func (former) whole(ctx context.Context, c *cluster) error { return c.setWhole(ctx) }

func (former) selector() string {
	return "app.kubernetes.io/instance=" + formerRelease + ",app.kubernetes.io/component=etcd"
}

func (former) set() string { return formerSet }

func (former) judge(*cluster) error { return nil }

func (former) String() string { return "chart" }

// unpack writes the files of a directory of an embedded file system.
func unpack(from embed.FS, root, to string) error {
	below, err := fs.Sub(from, root)
	if err != nil {
		return err
	}
	return os.CopyFS(to, below)
}

// takeOver upgrades a release of the former chart to the chart quorate as docs/kubernetes-chart.md says, and goes back. Clients
// stay connected, and write but while the docs say that none may.
func takeOver(ctx context.Context, c *cluster) error {
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	client, err := c.access.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	past, err := leavePast(ctx, client)
	if err != nil {
		return err
	}
	seen := watchWrites(ctx, client)
	c.writer.hold()
	before := c.writer.keys()
	if err := c.forward(ctx); err != nil {
		return err
	}
	c.writer.resume()
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	if err := past.check(ctx, client); err != nil {
		return err
	}
	c.writer.hold()
	if err := c.holds(ctx, c.writer.keys()); err != nil {
		return err
	}
	if err := seen.all(ctx, c.writer.keys()); err != nil {
		return err
	}
	if err := c.back(ctx); err != nil {
		return err
	}
	c.writer.giveUp(before)
	c.writer.resume()
	return nil
}

// forward stops the members, deletes the StatefulSet and upgrades the release.
func (c *cluster) forward(ctx context.Context) error {
	if err := c.sameIndex(ctx); err != nil {
		return err
	}
	if err := c.deleteSet(ctx); err != nil {
		return err
	}
	if err := c.helm(ctx, "upgrade", formerRelease, c.charts+"/"+chartName, "-n", c.namespace, "--wait", "--timeout", "3m",
		"-f", c.charts+"/"+chartName+"/values-takeover.yaml", "--set", "image.registry=registry.example.com",
		"--set", "persistence.size=1Gi,persistence.storageClass="+c.class+",extraFlags={--memory=192MiB}"); err != nil {
		return err
	}
	return c.ready(ctx)
}

// back stops the members, gives etcd's files their name again, and rolls the release back.
func (c *cluster) back(ctx context.Context) error {
	if err := c.deleteSet(ctx); err != nil {
		return err
	}
	for i := range replicas {
		if err := c.rename(ctx, i); err != nil {
			return err
		}
	}
	err := c.helm(ctx, "rollback", formerRelease, "1", "-n", c.namespace, "--no-hooks", "--wait", "--timeout", "3m")
	if err != nil {
		return err
	}
	return c.ready(ctx)
}

// deleteSet scales the StatefulSet to nothing, and deletes it. The claims stay.
func (c *cluster) deleteSet(ctx context.Context) error {
	sets := c.plane.Client.AppsV1().StatefulSets(c.namespace)
	if _, err := sets.Patch(ctx, c.set(), types.MergePatchType, []byte(`{"spec":{"replicas":0}}`),
		metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := until(ctx, 2*time.Minute, "all pods have ended", func() error {
		pods, err := c.pods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d are there", len(pods))
		}
		return err
	}); err != nil {
		return err
	}
	return sets.Delete(ctx, c.set(), metav1.DeleteOptions{})
}

// rename runs a pod with a shell on a claim, in which etcd's files get their name again.
func (c *cluster) rename(ctx context.Context, i int) error {
	name := "rename-" + fmt.Sprint(i)
	command, err := renaming(c.docs, "/claim")
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.claimName(i)}}}},
		Containers: []corev1.Container{{Name: "shell", Image: "busybox",
			Command:      command,
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/claim"}}}},
	}}
	pods := c.plane.Client.CoreV1().Pods(c.namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := until(ctx, time.Minute, name+" has renamed", func() error {
		p, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err == nil && p.Status.Phase != corev1.PodSucceeded {
			err = fmt.Errorf("it is %s", p.Status.Phase)
		}
		return err
	}); err != nil {
		return err
	}
	return pods.Delete(ctx, name, metav1.DeleteOptions{})
}

// renaming is the command by which docs/kubernetes-chart.md gives etcd's files their name again, in a claim that is at a path.
func renaming(docs, at string) ([]string, error) {
	all, err := blocksOf(docs, "kubernetes-chart.md", "## Take over a release of the former chart")
	if err != nil {
		return nil, err
	}
	for _, block := range all {
		_, text, found := strings.Cut(block, "<<EOF\n")
		if !found {
			continue
		}
		var pod corev1.Pod
		text, _, _ = strings.Cut(text, "\nEOF\n")
		if err := yaml.Unmarshal([]byte(text), &pod); err != nil {
			return nil, err
		}
		command := pod.Spec.Containers[0].Command
		for i, word := range command {
			command[i] = strings.ReplaceAll(word, "/bitnami/etcd", at)
		}
		return command, nil
	}
	return nil, errors.New("the page makes no pod any more")
}

// sameIndex waits until all members have applied the same.
func (c *cluster) sameIndex(ctx context.Context) error {
	client, err := c.access.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	return until(ctx, time.Minute, "all members have applied the same", func() error {
		pods, err := c.pods(ctx)
		if err != nil {
			return err
		}
		applied := map[uint64]bool{}
		for _, p := range pods {
			call, cancel := context.WithTimeout(ctx, putTime)
			status, err := client.Status(call, c.access.member(p.Status.PodIP))
			cancel()
			if err != nil {
				return err
			}
			applied[status.RaftAppliedIndex] = true
		}
		if len(applied) != 1 {
			return fmt.Errorf("they have applied %v", applied)
		}
		return nil
	})
}

// holds fails if keys are not there.
func (c *cluster) holds(ctx context.Context, acked map[string]int64) error {
	present, err := c.writer.present(ctx)
	if err != nil {
		return err
	}
	if n := lost(acked, present); n > 0 {
		return fmt.Errorf("%d acknowledged writes are lost", n)
	}
	return nil
}
