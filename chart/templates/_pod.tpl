{{/* Parts of the pod. */}}

{{- define "extender.affinity" -}}
{{- if .Values.affinity -}}
{{- toYaml .Values.affinity -}}
{{- else -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "extender.selectorLabels" . | nindent 12 }}
{{- end -}}
{{- end -}}

{{- define "extender.spread" -}}
{{- if .Values.topologySpreadConstraints -}}
{{- $selector := dict "matchLabels" (include "extender.selectorLabels" . | fromYaml) -}}
{{- range $constraint := .Values.topologySpreadConstraints }}
{{- if not (hasKey $constraint "labelSelector") }}
{{- $constraint = merge (dict "labelSelector" $selector) $constraint }}
{{- end }}
- {{- toYaml $constraint | nindent 2 }}
{{- end -}}
{{- else -}}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "extender.selectorLabels" . | nindent 6 }}
{{- end -}}
{{- end -}}

{{/* Startup, liveness and readiness probes of a container. Argument: (list $ port). */}}
{{- define "extender.probes" -}}
{{- $probes := (index . 0).Values.probes -}}
{{- $port := index . 1 -}}
startupProbe:
  httpGet: {path: /livez, port: {{ $port }}, scheme: HTTPS}
  {{- toYaml $probes.startup | nindent 2 }}
livenessProbe:
  httpGet: {path: /livez, port: {{ $port }}, scheme: HTTPS}
  {{- toYaml $probes.liveness | nindent 2 }}
readinessProbe:
  httpGet: {path: /readyz, port: {{ $port }}, scheme: HTTPS}
  {{- toYaml $probes.readiness | nindent 2 }}
{{- end -}}

{{/* Command line of the extender or the standalone scheduler. */}}
{{- define "extender.args" -}}
{{- if eq .Values.mode "standalone" -}}
- schedule
- --config=/etc/extender/scheduler.yaml
- --secure-port={{ .Values.metrics.port }}
{{- else -}}
- serve
- --config=/etc/extender/scheduler.yaml
- --port={{ .Values.extender.port }}
{{- range $verb := list "filter" "prioritize" "preempt" "bind" }}
{{- if not (has $verb $.Values.extender.verbs) }}
- --{{ $verb }}-verb=
{{- end }}
{{- end }}
{{- if eq .Values.extender.filterAnswer "best" }}
- --filter-answer=best
- --assume-timeout={{ .Values.extender.assumeTimeout }}
{{- end }}
{{- if eq .Values.mode "beside" }}
- --bind-address=127.0.0.1
- --secure-port={{ .Values.metrics.extenderPort }}
{{- else }}
- --bind-address=0.0.0.0
- --tls-cert-file=/etc/certificates/tls.crt
- --tls-private-key-file=/etc/certificates/tls.key
- --client-ca-file=/etc/certificates/ca.crt
- {{ join "," .Values.service.allowedClientNames | printf "--allowed-client-names=%s" | quote }}
{{- end }}
{{- end }}
- --emulated-version={{ include "extender.emulatedVersion" . }}
{{- range $gate, $on := .Values.scheduler.featureGates }}
- --feature-gates={{ $gate }}={{ $on }}
{{- end }}
- -v={{ .Values.scheduler.verbosity }}
- --logging-format={{ .Values.scheduler.loggingFormat }}
{{- if .Values.scheduler.ui }}
- --ui
{{- end }}
{{- with .Values.scheduler.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "extender.searchPath" -}}
{{- $places := list -}}
{{- if .Values.plugins.images -}}{{- $places = append $places "/plugins/packages" -}}{{- end -}}
{{- if include "extender.hasModules" . -}}{{- $places = append $places "/plugins/modules" -}}{{- end -}}
{{- join ":" $places -}}
{{- end -}}

{{- define "extender.container" -}}
name: {{ ternary "scheduler" "extender" (eq .Values.mode "standalone") }}
image: {{ include "extender.image" (list .Values.image .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: {{- include "extender.args" . | nindent 2 }}
{{- $path := include "extender.searchPath" . }}
{{- if or $path .Values.extraEnv }}
env:
  {{- with $path }}
  - name: PYTHONPATH
    value: {{ . }}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
ports:
  {{- if eq .Values.mode "service" }}
  - {name: verbs, containerPort: {{ .Values.extender.port }}}
  {{- else if eq .Values.mode "beside" }}
  - {name: extender, containerPort: {{ .Values.metrics.extenderPort }}}
  {{- else }}
  - {name: metrics, containerPort: {{ .Values.metrics.port }}}
  {{- end }}
{{- $ports := dict "service" "verbs" "beside" "extender" "standalone" "metrics" }}
{{ include "extender.probes" (list . (get $ports .Values.mode)) }}
{{- if and (eq .Values.mode "service") (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) (gt (int .Values.terminationGracePeriodSeconds) 3) }}
{{- /* The pod answers until the nodes have its removal from the service. */}}
lifecycle: {preStop: {sleep: {seconds: 3}}}
{{- end }}
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext: {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
  - {name: configuration, mountPath: /etc/extender, readOnly: true}
  {{- if eq .Values.mode "service" }}
  - {name: certificates, mountPath: /etc/certificates, readOnly: true}
  {{- end }}
  {{- if .Values.plugins.images }}
  - {name: packages, mountPath: /plugins/packages, readOnly: true}
  {{- end }}
  {{- if include "extender.hasModules" . }}
  - {name: modules, mountPath: /plugins/modules, readOnly: true}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The cluster's version without vendor suffixes. */}}
{{- define "extender.clusterVersion" -}}
{{- with semver .Capabilities.KubeVersion.Version -}}v{{ .Major }}.{{ .Minor }}.{{ .Patch }}{{- end -}}
{{- end -}}

{{/* The release that is emulated: the selected one, or else the nearest to that of kube-scheduler. */}}
{{- define "extender.emulatedVersion" -}}
{{- $version := include "extender.clusterVersion" . -}}
{{- $tag := .Values.kubeScheduler.image.tag | default "" -}}
{{- if and (eq .Values.mode "beside") (regexMatch `^v?1\.[0-9]+` $tag) -}}
{{- $version = regexFind `^v?1\.[0-9]+` $tag -}}
{{- end -}}
{{- .Values.scheduler.emulatedVersion | default (ternary "1.36" "1.37" (semverCompare "<1.37-0" $version)) -}}
{{- end -}}

{{- define "extender.kubeSchedulerContainer" -}}
name: kube-scheduler
image: {{ include "extender.image" (list .Values.kubeScheduler.image (include "extender.clusterVersion" .)) }}
imagePullPolicy: {{ .Values.kubeScheduler.image.pullPolicy }}
command: [kube-scheduler]
args:
  - --config=/etc/extender/kube-scheduler.yaml
  - --secure-port={{ .Values.metrics.port }}
  {{- range $gate, $on := .Values.scheduler.featureGates }}
  - --feature-gates={{ $gate }}={{ $on }}
  {{- end }}
  - -v={{ .Values.kubeScheduler.verbosity }}
  {{- with .Values.kubeScheduler.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - {name: metrics, containerPort: {{ .Values.metrics.port }}}
{{ include "extender.probes" (list . "metrics") }}
resources: {{- toYaml .Values.kubeScheduler.resources | nindent 2 }}
securityContext: {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
  - {name: configuration, mountPath: /etc/extender, readOnly: true}
{{- end -}}

{{/* An init container that copies packages out of a plugin image, which must contain `cp`. */}}
{{- define "extender.copies" -}}
{{- range .Values.plugins.images }}
- name: plugins-{{ .name }}
  image: {{ .image }}
  imagePullPolicy: {{ default "IfNotPresent" .pullPolicy }}
  command: [cp, -R, {{ printf "%s/." (trimSuffix "/" .path) }}, /plugins/packages/]
  securityContext: {{- toYaml $.Values.securityContext | nindent 4 }}
  resources: {{- toYaml $.Values.resources | nindent 4 }}
  volumeMounts:
    - {name: packages, mountPath: /plugins/packages}
{{- end }}
{{- end -}}

{{- define "extender.volumes" -}}
- name: configuration
  configMap: {name: {{ include "extender.fullname" . | quote }}}
{{- if eq .Values.mode "service" }}
- name: certificates
  secret: {secretName: {{ include "extender.serverSecret" . | quote }}}
{{- end }}
{{- if .Values.plugins.images }}
- name: packages
  emptyDir: {}
{{- end }}
{{- if include "extender.hasModules" . }}
- name: modules
  configMap:
    name: {{ include "extender.fullname" . }}-plugins
    items:
      {{- range $name, $_ := .Values.plugins.modules }}
      - {key: {{ $name }}.py, path: {{ $name }}.py}
      {{- end }}
      - {key: entry_points.txt, path: modules-0.dist-info/entry_points.txt}
      - {key: METADATA, path: modules-0.dist-info/METADATA}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
