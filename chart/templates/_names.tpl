{{/* Names and labels of objects. */}}

{{- define "extender.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/*
Release name and chart name, or the release name alone if it contains the chart name; truncated to leave space for suffixes.
A Service has this name, which therefore has no dots.
*/}}
{{- define "extender.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
{{- $name = .Release.Name -}}
{{- if not (contains (include "extender.name" .) .Release.Name) -}}
{{- $name = printf "%s-%s" .Release.Name (include "extender.name" .) -}}
{{- end -}}
{{- end -}}
{{- $name | replace "." "-" | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* Cluster-scoped objects have the namespace in their name, so that releases with the same name do not collide. */}}
{{- define "extender.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "extender.fullname" .) -}}
{{- end -}}

{{- define "extender.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "extender.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "extender.leaseName" -}}
{{- default (include "extender.fullname" .) .Values.leaderElection.resourceName -}}
{{- end -}}

{{- define "extender.selectorLabels" -}}
app.kubernetes.io/name: {{ include "extender.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels of the pod of `helm test`. They do not match the selectors of the release, whose pods are its replicas. */}}
{{- define "extender.testLabels" -}}
app.kubernetes.io/name: {{ printf "%s-test" (include "extender.name" . | trunc 58 | trimSuffix "-") | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels of all objects, with others that replace them. Argument: (list $ otherLabels). A key must not occur twice. */}}
{{- define "extender.labels" -}}
{{- $root := index . 0 -}}
{{- toYaml (merge (dict) (index . 1 | default dict) ($root.Values.commonLabels | default dict) (include "extender.ownLabels" $root | fromYaml)) -}}
{{- end -}}

{{- define "extender.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/component: {{ ternary "extender" "scheduler" (eq .Values.mode "service") }}
{{ include "extender.selectorLabels" . }}
{{- end -}}

{{/* Labels and annotations of all objects. Argument: (list $ annotations), or (list $ annotations labels). */}}
{{- define "extender.metadata" -}}
{{- $root := index . 0 -}}
{{- $annotations := merge (dict) (index . 1 | default dict) ($root.Values.commonAnnotations | default dict) -}}
labels: {{- include "extender.labels" (list $root (slice . 2 | first)) | nindent 2 }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* registry/repository@digest, or with :tag. Argument: (list image defaultTag). */}}
{{- define "extender.image" -}}
{{- $image := index . 0 -}}
{{- $name := $image.repository -}}
{{- if $image.registry -}}{{- $name = printf "%s/%s" $image.registry $name -}}{{- end -}}
{{- if $image.digest -}}{{ $name }}@{{ $image.digest }}{{- else -}}{{ $name }}:{{ default (index . 1) $image.tag }}{{- end -}}
{{- end -}}
