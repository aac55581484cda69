package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSource(t *testing.T) {
	secret := func(name string, items ...corev1.KeyToPath) corev1.VolumeSource {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Items: items}}
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "whole", VolumeSource: secret("a")},
		{Name: "items", VolumeSource: secret("b", corev1.KeyToPath{Key: "crt", Path: "certs/tls.crt"})},
		{Name: "projected", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{}}, {Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}}}}},
		{Name: "empty"},
	}}}
	c := corev1.Container{VolumeMounts: []corev1.VolumeMount{
		{Name: "whole", MountPath: "/tls"}, {Name: "items", MountPath: "/tls/items"}, {Name: "projected", MountPath: "/p/"},
		{Name: "whole", MountPath: "/one.crt", SubPath: "tls.crt"}, {Name: "empty", MountPath: "/data"},
	}}
	for at, want := range map[string]*file{
		"/tls/tls.crt": {"a", "tls.crt"}, "/tls/items/certs/tls.crt": {"b", "crt"}, "/tls/items/other": nil, "/p/ca.crt": {"c", "ca.crt"},
		"/one.crt": {"a", "tls.crt"}, "/data/tls.crt": nil, "/tlsx/tls.crt": nil, "/tls/deep/tls.crt": nil,
	} {
		if got := source(p, c, at); (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: got %v, want %v", at, got, want)
		}
	}
}

func TestSetting(t *testing.T) {
	c := corev1.Container{Command: []string{"quorate", "--cert-file", "/a"}, Args: []string{"--auto-tls", "--key-file=/b"},
		Env: []corev1.EnvVar{{Name: "ETCD_TRUSTED_CA_FILE", Value: "/c"}, {Name: "ETCD_KEY_FILE", Value: "/other"}}}
	for flag, want := range map[string]string{"cert-file": "/a", "key-file": "/b", "trusted-ca-file": "/c", "auto-tls": "true", "name": ""} {
		if got := setting(c, flag); got != want {
			t.Errorf("%s: got %q, want %q", flag, got, want)
		}
	}
}

func TestPod_called(t *testing.T) {
	p := pod{names: []string{"m1.c-members.db.svc", "m1", "10.0.0.1"}}
	for host, want := range map[string]bool{
		"m1.c-members.db.svc": true, "m1.c-members.db.svc.cluster.local": true, "m1.c-members.db.svc.cluster.local.": true, "m1": true,
		"m1.c-members": true, "m1.c-members.db": true, "10.0.0.1": true,
		"m1.example.org": false, "m11": false, "m1.c-members.db.svcx": false, "10.0.0.11": false, "m": false,
	} {
		if got := p.called(host); got != want {
			t.Errorf("%s: got %v, want %v", host, got, want)
		}
	}
}

// Ensure that a pod of another kind is no member, and that names and states are read.
func TestMember(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "job"}}}}
	if member(p) != nil {
		t.Error("a job is a member")
	}
	recovers := p.DeepCopy()
	recovers.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "client", ContainerPort: 2379}}
	if member(recovers) == nil {
		t.Error("a pod with a port for clients is no member")
	}
	if recovers.Labels = map[string]string{purposeLabel: "recover"}; member(recovers) != nil {
		t.Error("a pod that recovers a claim is a member")
	}
	p.Annotations = map[string]string{passwordAnnotation: "root/etcd-root-password"}
	p.Name, p.Status.PodIP, p.Status.Phase = "etcd-0", "10.0.0.1", corev1.PodRunning
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 2379}}
	p.Spec.Containers[0].Args = []string{"--listen-client-urls=https://0.0.0.0:2379"}
	m := member(p)
	if m == nil || m.running || !m.encrypted || m.authority != nil || m.names[0] != "etcd-0" || m.names[1] != "10.0.0.1" ||
		*m.password != (file{"root", "etcd-root-password"}) {
		t.Errorf("got %+v", m)
	}
}

// Ensure that the authority is found of a member that asks clients for no certificates, which the flag of one would make it do.
func TestMember_authority(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "certs", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}}}},
		Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 2379}},
			VolumeMounts: []corev1.VolumeMount{{Name: "certs", MountPath: "/certs"}},
			Env:          []corev1.EnvVar{{Name: "ETCD_CERT_FILE", Value: "/certs/cert.pem"}, {Name: "QUORATE_CACERT", Value: "/certs/ca.pem"}}}}}}
	if m := member(p); m.authority == nil || *m.authority != (file{"own", "ca.pem"}) {
		t.Errorf("got %+v", m.authority)
	}
}
