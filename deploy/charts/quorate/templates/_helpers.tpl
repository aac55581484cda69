{{- define "quorate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "quorate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "quorate.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "quorate.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "quorate.headless" -}}
{{- printf "%s-headless" (include "quorate.fullname" .) -}}
{{- end -}}

{{/* The domain of the pods: POD. before it is the name of one. */}}
{{- define "quorate.domain" -}}
{{- printf "%s.%s.svc.%s" (include "quorate.headless" .) .Release.Namespace .Values.clusterDomain -}}
{{- end -}}

{{- define "quorate.selector" -}}
app.kubernetes.io/name: {{ include "quorate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ include "quorate.name" . }}
{{- end -}}

{{- define "quorate.labels" -}}
app.kubernetes.io/name: {{ include "quorate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The annotations of an object: those of the caller, and common ones. */}}
{{- define "quorate.annotations" -}}
{{- $all := merge (dict) (default dict .own) (default dict .root.Values.commonAnnotations) -}}
{{- with $all -}}
annotations:
  {{- tpl (toYaml .) $.root | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Labels of pods: none that another version of the chart changes, which would restart members. */}}
{{- define "quorate.podLabels" -}}
{{ include "quorate.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- with .Values.podLabels }}
{{ tpl (toYaml .) $ }}
{{- end }}
{{- end -}}

{{- define "quorate.image" -}}
{{- $registry := default .Values.global.imageRegistry .Values.image.registry -}}
{{- $tag := .Values.image.tag | default (printf "v%s" .Chart.AppVersion) -}}
{{- $name := ternary (printf "%s/%s" $registry .Values.image.repository) .Values.image.repository (ne $registry "") -}}
{{- if .Values.image.digest -}}{{ $name }}@{{ .Values.image.digest }}{{- else -}}{{ $name }}:{{ $tag }}{{- end -}}
{{- end -}}

{{- define "quorate.pullSecrets" -}}
{{- with concat (default list .Values.global.imagePullSecrets) (default list .Values.image.pullSecrets) -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ if kindIs "map" . }}{{ .name }}{{ else }}{{ . }}{{ end }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "quorate.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "quorate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/*
The StatefulSet that is there, or what is left of it; empty at an installation, and where templates are rendered without access to
the cluster.
*/}}
{{- define "quorate.running" -}}
{{- $set := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "quorate.fullname" .) -}}
{{- if or $set (not .Release.IsUpgrade) -}}{{- toJson $set -}}{{- else -}}{{- include "quorate.left" . -}}{{- end -}}
{{- end -}}

{{/*
A StatefulSet that was deleted while its pods run on (--cascade=orphan), as far as the upgrade must know it: the founders, by the
headless Service, how many pods there are, how many of them are ready, and their containers. Empty if the release is of another chart,
as before a takeover.
*/}}
{{- define "quorate.left" -}}
{{- $service := lookup "v1" "Service" .Release.Namespace (include "quorate.headless" .) -}}
{{- $of := dig "metadata" "labels" "helm.sh/chart" "" ($service | default dict) -}}
{{- $out := dict -}}
{{- if regexMatch (printf "^%s-[0-9]" .Chart.Name) $of -}}
{{- $containers := list -}}
{{- $count := 0 -}}
{{- $ready := 0 -}}
{{- range (lookup "v1" "Pod" .Release.Namespace "").items -}}
{{- $own := eq (toString (dig "metadata" "labels" "app.kubernetes.io/instance" "" .)) $.Release.Name -}}
{{- if and $own (regexMatch (printf "^%s-[0-9]+$" (include "quorate.fullname" $)) .metadata.name) -}}
{{- $count = add1 $count -}}
{{- $containers = .spec.containers -}}
{{- range dig "status" "conditions" list . -}}
{{- if and (eq .type "Ready") (eq .status "True") -}}{{- $ready = add1 $ready -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $noted := dig "metadata" "annotations" "quorate.io/founders" "" $service -}}
{{- $_ := set $out "metadata" (dict "annotations" (dict "quorate.io/founders" $noted)) -}}
{{- $_ := set $out "spec" (dict "replicas" $count "template" (dict "spec" (dict "containers" $containers))) -}}
{{- $_ := set $out "status" (dict "readyReplicas" $ready) -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{/*
The name of the members that an upgraded release has, if these values give another one: that of a StatefulSet, or of a headless
Service whose StatefulSet was deleted for a while, as before a takeover. A chart above this one may have others, of other charts.
*/}}
{{- define "quorate.otherName" -}}
{{- $headless := lookup "v1" "Service" .Release.Namespace (include "quorate.headless" .) -}}
{{- if and .Release.IsUpgrade (not (include "quorate.running" . | fromJson)) (not $headless) -}}
{{- $chart := printf "^(%s)-[0-9]" (ternary "quorate|etcd" .Chart.Name .Chart.IsRoot) -}}
{{- $names := list -}}
{{- range $kind, $version := dict "StatefulSet" "apps/v1" "Service" "v1" -}}
{{- range (lookup $version $kind $.Release.Namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $own := eq (toString (get $labels "app.kubernetes.io/instance")) $.Release.Name -}}
{{- if and $own (regexMatch $chart (toString (get $labels "helm.sh/chart"))) -}}
{{- if or (eq $kind "StatefulSet") (hasSuffix "-headless" .metadata.name) -}}
{{- $names = append $names (trimSuffix "-headless" .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $names -}}{{- first . -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* How many members found the cluster: as said, as at the installation, or all. */}}
{{- define "quorate.founders" -}}
{{- $running := include "quorate.running" . | fromJson -}}
{{- $noted := dig "metadata" "annotations" "quorate.io/founders" "" $running -}}
{{- if kindIs "invalid" .Values.founders -}}
{{- default .Values.replicaCount $noted -}}
{{- else -}}
{{- .Values.founders -}}
{{- end -}}
{{- end -}}

{{/* The storage class of the members' claims; empty: none is named. */}}
{{- define "quorate.storageClass" -}}
{{- .Values.persistence.storageClass | default .Values.global.defaultStorageClass | default .Values.global.storageClass -}}
{{- end -}}

{{- define "quorate.rootSecret" -}}
{{- default (include "quorate.fullname" .) (tpl .Values.auth.rbac.existingSecret .) -}}
{{- end -}}

{{- define "quorate.backupURL" -}}
{{- if .Values.backup.enabled -}}{{ .Values.backup.url }}{{- else if .Values.disasterRecovery.enabled -}}file:///snapshots{{- end -}}
{{- end -}}

{{/* A quantity of Kubernetes, such as 1.5Gi, in MiB; empty: it is written otherwise, or there is none. */}}
{{- define "quorate.mebibytes" -}}
{{- $text := toString . -}}
{{- if regexMatch "^[0-9]+([.][0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$" $text -}}
{{- $unit := regexFind "[A-Za-z]+$" $text -}}
{{- $bytes := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 -}}
{{- divf (mulf (trimSuffix $unit $text) (get $bytes $unit)) 1048576 | floor | int -}}
{{- end -}}
{{- end -}}

{{- define "quorate.snapshotsClaim" -}}
{{- default (printf "%s-snapshotter" (include "quorate.fullname" .)) (tpl .Values.disasterRecovery.pvc.existingClaim .) -}}
{{- end -}}

{{/*
TLS of clients and of members, as they result from auth and certManager: dict "root" . "side" "client".
JSON with secure, auto, auth (certificates are demanded), secret, cert, key, ca.
*/}}
{{- define "quorate.tls" -}}
{{- $v := index .root.Values.auth .side -}}
{{- $managed := .root.Values.certManager.enabled -}}
{{- $out := dict "secure" (or $managed $v.secureTransport) "auto" (and (not $managed) $v.useAutoTLS) -}}
{{- $_ := set $out "auth" (or $v.enableAuthentication (and $managed (eq .side "peer"))) -}}
{{- if $managed -}}
{{- $_ := set $out "secret" (printf "%s-%s-tls" (include "quorate.fullname" .root) .side) -}}
{{- $_ := merge $out (dict "cert" "tls.crt" "key" "tls.key" "ca" "ca.crt") -}}
{{- else -}}
{{- $_ := set $out "secret" (tpl $v.existingSecret .root) -}}
{{- $ca := $v.caFilename | default (ternary "ca.crt" "" $v.enableAuthentication) -}}
{{- $_ := merge $out (dict "cert" $v.certFilename "key" $v.certKeyFilename "ca" $ca) -}}
{{- end -}}
{{- $_ := set $out "scheme" (ternary "https" "http" $out.secure) -}}
{{- toJson $out -}}
{{- end -}}

{{/* NAME=URL of members 0 to N-1: dict "root" . "count" N. */}}
{{- define "quorate.members" -}}
{{- $root := .root -}}
{{- $tls := include "quorate.tls" (dict "root" $root "side" "peer") | fromJson -}}
{{- $list := list -}}
{{- range $i := until (int .count) -}}
{{- $pod := printf "%s-%d" (include "quorate.fullname" $root) $i -}}
{{- $url := printf "%s://%s.%s:%d" $tls.scheme $pod (include "quorate.domain" $root) (int $root.Values.containerPorts.peer) -}}
{{- $list = append $list (ternary (printf "%s=%s" $pod $url) $url $.named) -}}
{{- end -}}
{{- join "," $list -}}
{{- end -}}

{{/* How many of "count" members a number or a percentage "of" means, rounded up as Kubernetes does for budgets; empty if it is neither. */}}
{{- define "quorate.share" -}}
{{- $of := toString .of -}}
{{- if regexMatch "^[0-9]+$" $of -}}
{{- $of -}}
{{- else if regexMatch "^[0-9]+%$" $of -}}
{{- div (add (mul (trimSuffix "%" $of | int) .count) 99) 100 -}}
{{- end -}}
{{- end -}}

{{/* The URL of members for each other, with {} in the place of the name, as `quorate member scale` takes it. */}}
{{- define "quorate.peerURLs" -}}
{{- $tls := include "quorate.tls" (dict "root" . "side" "peer") | fromJson -}}
{{- printf "%s://{}.%s:%d" $tls.scheme (include "quorate.domain" .) (int .Values.containerPorts.peer) -}}
{{- end -}}

{{- define "quorate.endpoint" -}}
{{- $tls := include "quorate.tls" (dict "root" . "side" "client") | fromJson -}}
{{- if .Values.service.enabled -}}
{{- printf "%s://%s.%s.svc.%s:%d" $tls.scheme (include "quorate.fullname" .) .Release.Namespace .Values.clusterDomain (int .Values.service.ports.client) -}}
{{- else -}}
{{- printf "%s://%s:%d" $tls.scheme (include "quorate.domain" .) (int .Values.containerPorts.client) -}}
{{- end -}}
{{- end -}}

{{/* Affinity of one kind: dict "root" . "preset" "soft". */}}
{{- define "quorate.podTerms" -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (include "quorate.selector" .root | fromYaml)) -}}
{{- if eq .preset "hard" -}}
requiredDuringSchedulingIgnoredDuringExecution:
  {{- list $term | toYaml | nindent 2 }}
{{- else -}}
preferredDuringSchedulingIgnoredDuringExecution:
  {{- list (dict "weight" 1 "podAffinityTerm" $term) | toYaml | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "quorate.affinity" -}}
{{- if .Values.affinity }}
{{ tpl (toYaml .Values.affinity) . }}
{{- else }}
{{- with .Values.podAffinityPreset }}
podAffinity:
  {{- include "quorate.podTerms" (dict "root" $ "preset" .) | nindent 2 }}
{{- end }}
{{- with .Values.podAntiAffinityPreset }}
podAntiAffinity:
  {{- include "quorate.podTerms" (dict "root" $ "preset" .) | nindent 2 }}
{{- end }}
{{- with .Values.nodeAffinityPreset }}
{{- if .type }}
{{- $match := list (dict "matchExpressions" (list (dict "key" .key "operator" "In" "values" .values))) }}
nodeAffinity:
  {{- if eq .type "hard" }}
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      {{- toYaml $match | nindent 6 }}
  {{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 1
      preference:
        {{- index $match 0 | toYaml | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
