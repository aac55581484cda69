{{/*
The environment of a member: its flags, as etcd's variables, and those of commands that somebody runs in the pod. One that
extraEnvVars has, too, is left out: no name may be there twice.
*/}}
{{- define "quorate.env" -}}
{{- $client := include "quorate.tls" (dict "root" . "side" "client") | fromJson -}}
{{- $peer := include "quorate.tls" (dict "root" . "side" "peer") | fromJson -}}
{{- $ports := .Values.containerPorts -}}
{{- $replaced := list -}}
{{- range .Values.extraEnvVars }}{{ $replaced = append $replaced .name }}{{ end -}}
{{- $host := printf "$(MY_POD_NAME).%s" (include "quorate.domain" .) -}}
{{- $command := dict "root" . "endpoint" (printf "%s://%s:%d" $client.scheme $host (int $ports.client)) -}}
- name: MY_POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- if and .Values.zoneLabel (not (has "ETCD_ZONE" $replaced)) }}
- name: ETCD_ZONE
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['{{ .Values.zoneLabel }}']"}}
{{- end }}
{{- $env := list
  (list "ETCD_NAME" "$(MY_POD_NAME)")
  (list "ETCD_DATA_DIR" (printf "%s/data" .Values.persistence.mountPath))
  (list "ETCD_LISTEN_CLIENT_URLS" (printf "%s://0.0.0.0:%d" $client.scheme (int $ports.client)))
  (list "ETCD_ADVERTISE_CLIENT_URLS" (printf "%s://%s:%d" $client.scheme $host (int $ports.client)))
  (list "ETCD_LISTEN_PEER_URLS" (printf "%s://0.0.0.0:%d" $peer.scheme (int $ports.peer)))
  (list "ETCD_INITIAL_ADVERTISE_PEER_URLS" (printf "%s://%s:%d" $peer.scheme $host (int $ports.peer)))
  (list "ETCD_LISTEN_METRICS_URLS" (printf "http://0.0.0.0:%d" (int $ports.metrics)))
  (list "ETCD_LOG_LEVEL" (ternary "debug" .Values.logLevel .Values.image.debug)) -}}
{{- range concat $env (include "quorate.foundingEnv" . | fromJsonArray) (include "quorate.tlsEnv" . | fromJsonArray) (include "quorate.optionEnv" . | fromJsonArray) (include "quorate.commandEnv" $command | fromJsonArray) }}
{{- if not (has (index . 0) $replaced) }}
- name: {{ index . 0 }}
  value: {{ index . 1 | toString | quote }}
{{- end }}
{{- end }}
{{- with .Values.auth.joinToken.existingSecret }}
- name: ETCD_JOIN_TOKEN
  valueFrom: {secretKeyRef: {name: {{ tpl . $ | quote }}, key: {{ $.Values.auth.joinToken.existingSecretKey | quote }}, optional: true}}
{{- end }}
{{- with .Values.extraEnvVars }}
{{ tpl (toYaml .) $ }}
{{- end }}
{{- end -}}

{{/*
How commands of quorate in a container reach the cluster: dict "root" . "endpoint" URL. JSON, a list of [variable, value].
*/}}
{{- define "quorate.commandEnv" -}}
{{- $tls := include "quorate.tls" (dict "root" .root "side" "client") | fromJson -}}
{{- $env := list (list "QUORATE_ENDPOINTS" .endpoint) -}}
{{- if and $tls.secure (not $tls.auto) -}}
{{- with $tls.ca -}}
{{- $env = append $env (list "QUORATE_CACERT" (printf "/etc/quorate/client/%s" .)) -}}
{{- end -}}
{{- if $tls.auth -}}
{{- $env = append $env (list "QUORATE_CERT" (printf "/etc/quorate/client/%s" $tls.cert)) -}}
{{- $env = append $env (list "QUORATE_KEY" (printf "/etc/quorate/client/%s" $tls.key)) -}}
{{- end -}}
{{- end -}}
{{- toJson $env -}}
{{- end -}}

{{/*
Who founds the cluster, and who joins it. Members whose numbers are below the founders' found it, if all of them have met; any other
one, and a founder that the cluster has removed, joins it. A founder that finds a running cluster without its disk waits. Once a
cluster of one has grown nobody founds: its only founder would found a second one if its disk were lost.
*/}}
{{- define "quorate.foundingEnv" -}}
{{- $founders := int (include "quorate.founders" .) -}}
{{- $count := int .Values.replicaCount -}}
{{- $existing := or (eq .Values.initialClusterState "existing") (and (eq $founders 1) (gt $count 1)) -}}
{{- $token := .Values.initialClusterToken | default (printf "%s.%s" .Release.Namespace (include "quorate.fullname" .)) -}}
{{- $env := list -}}
{{- if not $existing -}}
{{- $env = append $env (list "ETCD_INITIAL_CLUSTER" (include "quorate.members" (dict "root" . "count" $founders "named" true))) -}}
{{- $env = append $env (list "ETCD_INITIAL_CLUSTER_STATE" "new") -}}
{{- $env = append $env (list "ETCD_INITIAL_CLUSTER_TOKEN" $token) -}}
{{- end -}}
{{- if or $existing (gt $founders 1) -}}
{{- $env = append $env (list "ETCD_JOIN" (include "quorate.members" (dict "root" . "count" (max 5 $count $founders) "named" false))) -}}
{{- end -}}
{{- toJson $env -}}
{{- end -}}

{{- define "quorate.tlsEnv" -}}
{{- $env := list -}}
{{- range $side, $prefix := dict "client" "ETCD_" "peer" "ETCD_PEER_" -}}
{{- $tls := include "quorate.tls" (dict "root" $ "side" $side) | fromJson -}}
{{- $dir := printf "/etc/quorate/%s" $side -}}
{{- if and $tls.secure $tls.auto -}}
{{- $env = append $env (list (printf "%sAUTO_TLS" $prefix) "true") -}}
{{- else if $tls.secure -}}
{{- $env = append $env (list (printf "%sCERT_FILE" $prefix) (printf "%s/%s" $dir $tls.cert)) -}}
{{- $env = append $env (list (printf "%sKEY_FILE" $prefix) (printf "%s/%s" $dir $tls.key)) -}}
{{- /* With an authority of clients a member demands their certificates, as etcd does, whatever else is set. */}}
{{- if and $tls.ca (or $tls.auth (eq $side "peer")) -}}
{{- $env = append $env (list (printf "%sTRUSTED_CA_FILE" $prefix) (printf "%s/%s" $dir $tls.ca)) -}}
{{- end -}}
{{- if $tls.auth -}}
{{- $env = append $env (list (printf "%sCLIENT_CERT_AUTH" $prefix) "true") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $env -}}
{{- end -}}

{{- define "quorate.optionEnv" -}}
{{- $v := .Values -}}
{{- $client := include "quorate.tls" (dict "root" . "side" "client") | fromJson -}}
{{- $env := list -}}
{{- $at := ternary (printf "https://0.0.0.0:%d" (int $v.containerPorts.console)) (printf "http://127.0.0.1:%d" (int $v.containerPorts.console)) $client.secure -}}
{{- $token := $v.auth.token -}}
{{- $key := printf "/etc/quorate/token/%s" $token.privateKey.filename -}}
{{- $jwt := printf "jwt,priv-key=%s,sign-method=%s,ttl=%s" $key $token.signMethod $token.ttl -}}
{{- $rows := list
  (list "ETCD_LISTEN_CONSOLE_URLS" (ternary $at "" $v.console.enabled))
  (list "ETCD_CONSOLE" (ternary $v.console.mode "" $v.console.enabled))
  (list "ETCD_AUTO_COMPACTION_MODE" $v.autoCompactionMode)
  (list "ETCD_AUTO_COMPACTION_RETENTION" $v.autoCompactionRetention)
  (list "ETCD_AUTH_TOKEN" (ternary $jwt "" (and $token.enabled (eq $token.type "jwt"))))
  (list "ETCD_MEMORY" $v.memory)
  (list "ETCD_BACKUP_PLACES" (default (include "quorate.backupURL" .) $v.backup.places))
  (list "GOMAXPROCS" $v.maxProcs) -}}
{{- range $rows -}}
{{- if ne (toString (index . 1)) "" -}}{{- $env = append $env . -}}{{- end -}}
{{- end -}}
{{- toJson $env -}}
{{- end -}}

{{/* What a pod mounts: JSON, a list of [volume name, path, source]. */}}
{{- define "quorate.mounts" -}}
{{- $out := list (list "tmp" "/tmp" (dict "emptyDir" (dict))) -}}
{{- range $side := list "client" "peer" -}}
{{- $tls := include "quorate.tls" (dict "root" $ "side" $side) | fromJson -}}
{{- if and $tls.secure (not $tls.auto) -}}
{{- $source := dict "secret" (dict "secretName" $tls.secret "defaultMode" 288) -}}
{{- $out = append $out (list (printf "%s-certs" $side) (printf "/etc/quorate/%s" $side) $source) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.auth.token.enabled (eq .Values.auth.token.type "jwt") -}}
{{- $source := dict "secret" (dict "secretName" (tpl .Values.auth.token.privateKey.existingSecret .) "defaultMode" 288) -}}
{{- $out = append $out (list "token" "/etc/quorate/token" $source) -}}
{{- end -}}
{{- with .Values.backup.existingSecret -}}
{{- $out = append $out (list "backup" "/etc/quorate/backup" (dict "secret" (dict "secretName" (tpl . $) "defaultMode" 288))) -}}
{{- end -}}
{{- if .Values.disasterRecovery.enabled -}}
{{- $source := dict "persistentVolumeClaim" (dict "claimName" (include "quorate.snapshotsClaim" .)) -}}
{{- $out = append $out (list "snapshots" "/snapshots" $source) -}}
{{- end -}}
{{- toJson $out -}}
{{- end -}}

{{- define "quorate.envFrom" -}}
{{- with .Values.extraEnvVarsCM }}
- configMapRef: {name: {{ tpl . $ | quote }}}
{{- end }}
{{- with .Values.extraEnvVarsSecret }}
- secretRef: {name: {{ tpl . $ | quote }}}
{{- end }}
{{- with .Values.backup.existingSecretEnv }}
- secretRef: {name: {{ tpl . $ | quote }}}
{{- end }}
{{- end -}}

{{/* A probe: dict "root" . "name" "livenessProbe" "path" "/livez". */}}
{{- define "quorate.probe" -}}
{{- $custom := index .root.Values (printf "custom%s" (title .name)) -}}
{{- $probe := index .root.Values .name -}}
{{- if $custom -}}
{{ .name }}:
  {{- tpl (toYaml $custom) .root | nindent 2 }}
{{- else if $probe.enabled -}}
{{ .name }}:
  httpGet: {path: {{ .path }}, port: metrics}
  {{- omit $probe "enabled" | toYaml | nindent 2 }}
{{- end }}
{{- end -}}
