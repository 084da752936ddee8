# The instructors' image: formgrader's server, Dask's scheduler and workers. It holds the answers: keep its registry private.
# docker build --file deploy/kubernetes/grader.Dockerfile --tag registry.example.org/deep-learning-cases-grader:0.1.0 .
FROM python:3.11-slim-bookworm

RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap git libseccomp2 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10000 --create-home --shell /bin/bash instructor

WORKDIR /opt/deep-learning-cases
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY deep_learning_cases deep_learning_cases
COPY grading grading
COPY labs labs
COPY deploy/instructor deploy/instructor
# PyTorch for the CPU alone: PyPI's brings several gigabytes for GPUs.
RUN python -m pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu --constraint constraints.txt --editable '.[torch,lab,service,grading]' \
 && python -m pip install --no-cache-dir 'jupyterhub>=5.5,<7'

# No USER line: only root can give each submission a user of its own where bubblewrap cannot start (docs/security.md).
ENV PYTHONPATH=/opt/deep-learning-cases
