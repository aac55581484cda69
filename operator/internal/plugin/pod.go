package plugin

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	clientPortName = "client"
	clientPort     = 2379
)

// pod is the pod of a member, with what it says of itself.
type pod struct {
	name           string
	names          []string // by which clients reach it, the one with the most labels first; the last is its address
	domain         string   // of the names of Kubernetes' services, as the member writes its own
	port           int32    // of clients
	running, ready bool
	state          string // if it does not run
	encrypted      bool
	demands        bool  // clients show certificates
	selfSigned     bool  // it makes its certificate itself, which nobody can verify
	authority      *file // that signs members
	certificate    *file // nil: none is known
	key            *file
	password       *file // root's, if the pod names it
	foreign        string
}

// file is a key of a Secret.
type file struct{ secret, key string }

// purposeLabel tells members of other pods of a cluster, such as one that recovers a claim.
const purposeLabel = "quorate.io/purpose"

// passwordAnnotation of a pod names the Secret and the key of root's password: NAME/KEY.
const passwordAnnotation = "quorate.io/root-password-secret"

// member reads a pod; nil: it is none of a member, which has a port for clients.
func member(p *corev1.Pod) *pod {
	if purpose := p.Labels[purposeLabel]; purpose != "" && purpose != "member" {
		return nil
	}
	at := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return portOf(c) != 0 })
	if at < 0 {
		return nil
	}
	c := p.Spec.Containers[at]
	m := &pod{name: p.Name, port: portOf(c), state: string(p.Status.Phase)}
	host := p.Spec.Hostname
	if host == "" {
		host = p.Name
	}
	if p.Spec.Subdomain != "" {
		m.names = append(m.names, host+"."+p.Spec.Subdomain+"."+p.Namespace+".svc")
	}
	m.names = append(m.names, host)
	if p.Status.PodIP != "" {
		m.names = append(m.names, p.Status.PodIP)
	}
	for _, condition := range p.Status.Conditions {
		m.ready = m.ready || condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	}
	for _, status := range p.Status.ContainerStatuses {
		if status.Name != c.Name {
			continue
		}
		m.running = p.Status.Phase == corev1.PodRunning && status.State.Running != nil
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" {
			m.state = waiting.Reason
		}
	}
	m.domain = domainOf(setting(c, "advertise-client-urls"))
	m.readTLS(p, c)
	m.readPassword(p, c)
	return m
}

// domainOf is the domain of services in a member's own URLs: cluster.local, unless one has another one behind .svc.
func domainOf(urls string) string {
	for one := range strings.SplitSeq(urls, ",") {
		_, behind, found := strings.Cut(one, ".svc.")
		if domain, _, _ := strings.Cut(behind, ":"); found && domain != "" && !strings.ContainsAny(domain, "/$*") {
			return domain
		}
	}
	return "cluster.local"
}

func portOf(c corev1.Container) int32 {
	for _, port := range c.Ports {
		if port.Name == clientPortName || port.ContainerPort == clientPort {
			return port.ContainerPort
		}
	}
	return 0
}

// readTLS reads how the pod encrypts, and where its files come from.
func (m *pod) readTLS(p *corev1.Pod, c corev1.Container) {
	certificate := setting(c, "cert-file")
	m.demands = truth(setting(c, "client-cert-auth"))
	m.selfSigned = certificate == "" && truth(setting(c, "auto-tls"))
	m.encrypted = certificate != "" || m.selfSigned || strings.HasPrefix(setting(c, "listen-client-urls"), "https://")
	for _, row := range []struct {
		flag string
		into **file
	}{{"cert-file", &m.certificate}, {"key-file", &m.key}, {"trusted-ca-file", &m.authority}} {
		at := setting(c, row.flag)
		if at == "" && row.flag == "trusted-ca-file" { // the member demands no certificates: its commands know the authority
			at = variable(c, "QUORATE_CACERT")
		}
		if at == "" {
			continue
		}
		if *row.into = source(p, c, at); *row.into == nil {
			m.foreign = fmt.Sprintf("--%s %s of pod %s comes from no Secret", row.flag, at, p.Name)
		}
	}
	if m.authority == nil && m.certificate != nil { // by which cert-manager and kubectl create secret tls know it
		m.authority = &file{m.certificate.secret, "ca.crt"}
	}
}

// readPassword finds what the pod says of root's password.
func (m *pod) readPassword(p *corev1.Pod, c corev1.Container) {
	if name, key, ok := strings.Cut(p.Annotations[passwordAnnotation], "/"); ok {
		m.password = &file{name, key}
		return
	}
	for _, env := range c.Env {
		if (env.Name == "ETCD_ROOT_PASSWORD" || env.Name == "QUORATE_ROOT_PASSWORD") && env.ValueFrom != nil {
			if ref := env.ValueFrom.SecretKeyRef; ref != nil {
				m.password = &file{ref.Name, ref.Key}
			}
		}
	}
}

// setting is what a member's flag is set to, by its command line or its environment; empty: it is not set there.
func setting(c corev1.Container, flag string) string {
	words := slices.Concat(c.Command, c.Args)
	for i, word := range words {
		name, value, both := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case !strings.HasPrefix(word, "-") || name != flag:
		case both:
			return value
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			return words[i+1]
		default:
			return "true"
		}
	}
	return variable(c, "ETCD_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_")))
}

// variable is what a variable of the environment is set to; empty: it is not set there.
func variable(c corev1.Container, name string) string {
	for _, env := range c.Env {
		if env.Name == name {
			return env.Value
		}
	}
	return ""
}

func truth(text string) bool {
	is, err := strconv.ParseBool(text)
	return err == nil && is
}

// source is the key of a Secret that a path in a container is mounted from; nil: it is from elsewhere.
func source(p *corev1.Pod, c corev1.Container, at string) *file {
	best := -1
	for i, mount := range c.VolumeMounts {
		if at != mount.MountPath && !strings.HasPrefix(at, strings.TrimSuffix(mount.MountPath, "/")+"/") {
			continue
		}
		if best < 0 || len(mount.MountPath) > len(c.VolumeMounts[best].MountPath) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	mount := c.VolumeMounts[best]
	inside := path.Join(mount.SubPath, strings.TrimPrefix(strings.TrimPrefix(at, mount.MountPath), "/"))
	for _, volume := range p.Spec.Volumes {
		switch {
		case volume.Name != mount.Name:
		case volume.Secret != nil:
			if key := keyAt(volume.Secret.Items, inside); key != "" {
				return &file{volume.Secret.SecretName, key}
			}
		case volume.Projected != nil:
			for _, from := range volume.Projected.Sources {
				if from.Secret == nil {
					continue
				}
				if key := keyAt(from.Secret.Items, inside); key != "" {
					return &file{from.Secret.Name, key}
				}
			}
		}
	}
	return nil
}

// keyAt is the key of a Secret at a path of its volume.
func keyAt(items []corev1.KeyToPath, at string) string {
	for _, item := range items {
		if item.Path == at {
			return item.Key
		}
	}
	if len(items) > 0 || strings.Contains(at, "/") {
		return ""
	}
	return at
}
