"""Sound files of every kind that a reader is given, made on the spot: each reads as it is, and is then damaged."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np

Samples = dict[str, bytes]  # by the name of the file


def database() -> dict[str, object]:
    segment = {"segment": [1.5, 7.25], "label": "Jump", "label_id": 3, "segment(frames)": [45, 218], "coverage": 0.4}
    videos = {
        "v_-abc": {"subset": "Test", "duration": 31.2, "fps": 29.97, "resolution": "64x48", "annotations": [segment]},
        "v_2": {"subset": "validation", "duration": 12, "fps": "30000/1001", "annotations": [segment, segment]},
    }
    return {"version": "1", "taxonomy": [], "database": videos}


def json_annotations(_: Path) -> Samples:
    found = {"label": "Jump", "segment": [1.5, 7.25], "score": 0.75}
    one = {"annotations": {"label": "Jump", "segment": [1, 250]}, "subset": "test", "duration": 10.0}
    files = {
        "truth": database(),
        "results": {"version": "1", "external_data": {}, "results": {"v_2": [found, found], "v_3": [found]}},
        "classes": {"results": {"v_2": [{"label": "Jump", "score": 0.5}]}},
        "fiftyone": {"classes": ["Jump"], "labels": {"v": [{"label": 0, "timestamps": [1, 2.5], "confidence": 0.5}]}},
        "bmn": {"v": {"duration_second": 9.5, "annotations": [{"segment": [1, 2], "label": "Jump"}]}},
        "multithumos": {"v": {"subset": "training", "duration": 9.5, "actions": [[3, 1.0, 2.0], [4, 5, 6]]}},
        "kinetics": {"database": {"v": one, "w": one}},
    }
    made = {f"{name}.json": json.dumps(content).encode() for name, content in files.items()}
    return made | {"truth.json.gz": gzip.compress(made["truth.json"], mtime=0)}


def text_annotations(_: Path) -> Samples:
    return {
        "columns.csv": b'video_id,t_start,t_end,label,score\nv_1,1.5,2.5,Jump,0.75\n"v,2",0,4,Run,1e-3\n',
        "truth.csv": b"video,start,end,class,subset,duration,fps\nv_1,1.5,2.5,Jump,test,31.5,25\nv_2,0,4,Run,,9,25\n",
        "proposals.csv": b"action,start,end,tmin,tmax\n0.5,0.1,0.2,1.0,2.0\n0.25,0.3,0.1,2.0,3.0\n",
        "kinetics.csv": b'label,youtube_id,time_start,time_end,split\nrun,-abc,1,11,val\n"jump, high",def,20,30,val\n',
        "thumos.txt": b"video_test_0000004 1.5 2.5 7 0.75\nvideo_test_0000006 0.2 9.1 9 0.5\n",
        "videos.txt": b"run/a 1.mp4 3\njump/b.mp4 14 15\n",
        "frames.txt": b"run/a 250 3\njump/b 99 14\n",
        "ucf.txt": b"ApplyEyeMakeup/v_ApplyEyeMakeup_g08_c01.avi 1\nArchery/v_Archery_g01_c02.avi 3\n",
    }


def language(_: Path) -> Samples:
    """Questions and sentences in every layout, and answers and windows for them."""
    question = {"question": "Where?", "answer": "B", "options": ["A. left", "B. right"]}
    lines = {
        "own.jsonl": [{"id": 1, "video": "a.mp4", "question": "Q?", "options": ["x", "y"], "answer": 1, "start": 0,
                       "end": 2}],
        "videomme.jsonl": [question | {"videoID": "a", "question_id": "001-1", "task_type": "t"}],
        "qvhighlights.jsonl": [
            {"qid": 1, "query": "q", "duration": 150, "vid": "y_0.0_150.0", "relevant_windows": [[4, 8]],
             "relevant_clip_ids": [2, 3], "saliency_scores": [[3, 2, 4], [4, 4, 4]]}
        ],
        "windows.jsonl": [{"qid": 1, "pred_relevant_windows": [[4, 8, 0.5]], "pred_saliency_scores": [0.1, 0.2]}],
        "answers.jsonl": [{"id": "1", "text": "The answer is B."}, {"id": "2", "probabilities": [0.5, 0.5]}],
    }  # fmt: skip
    objects = {
        "mvbench.json": [
            {"video": "a.mp4", "question": "Q?", "candidates": ["up", "down"], "answer": "up", "start": 1, "end": 2}
        ],
        "egoschema.json": [{"q_uid": "u", "question": "Q?", "option 0": "a", "option 1": "b"}],
        "perception.json": {"v": {"mc_question": [{"id": 0, "question": "Q?", "options": ["a", "b"], "answer_id": 1}]}},
        "tempcompass.json": {
            "9": {"speed": [{"question": "Q?\nA. fast\nB. slow", "answer": "B. slow", "prediction": "B"}]}
        },
        "captions.json": {"v_a": {"duration": 60, "timestamps": [[0, 9]], "sentences": ["s."]}},
        "answers.json": {"1": {"prediction": 1, "answer": 0}, "2": "B", "3": [0.25, 0.75]},
        "windows.json": {"1": [[4, 8, 0.5], [1, 2, 0.25]], "2": []},
    }
    samples = {name: "".join(json.dumps(row) + "\n" for row in rows).encode() for name, rows in lines.items()}
    samples |= {name: json.dumps(content).encode() for name, content in objects.items()}
    return samples | {
        "nextqa.csv": b"video,question,answer,qid,type,a0,a1,a2,a3,a4\n12,why run,2,0,CW,a,b,c,d,e\n",
        "own.csv": b"id,video,question,option_0,option_1,answer,needs_order\n1,a,Q?,x,y,B,true\n",
        "answers.csv": b"id,choice\n1,B\n2,0\n",
        "windows.csv": b"id,start,end,score\n1,4,8,0.5\n",
        "charades.txt": b"ABCDE 1.0 6.5##person sits.\nABCDE 1.0 6.5 0##person stands.\n",
    }


def pickled_annotations(_: Path) -> Samples:
    columns = {
        "video-id": ["v_1", "v_2"],
        "t-start": np.array([1.5, 2.0], np.float32),
        "t-end": np.array([3.5, 4.0]),
        "label": np.array([3, 4]),
        "score": np.array([0.5, 0.25]),
    }
    return {f"results-{protocol}.pkl": pickle.dumps(columns, protocol) for protocol in range(6)}


def lists(_: Path) -> Samples:
    return {
        "ids.json": b'["v_1", "v_2", "caf\\u00e9"]',
        "ids.txt": b"v_1\nv_2\n",
        "classes.txt": b"0 run\n1 jump high\n2 swim\n",
        "classes.csv": b"id,name\n0,run\n1,jump\n",
        "labels.json": b'{"run": "0", "jump": 1}',
    }


def scores(_: Path) -> Samples:
    return {
        "scores.json": b'{"v/1.jpg": [0.5, 0.25, 1], "v/2.jpg": [1, 2, 3]}',
        "sets.json": b'{"v/1.jpg": ["v/2.jpg", "v/3.jpg"], "w/1.jpg": []}',
        "labels.json": b'{"v/1.jpg": [1, 2], "v/2.jpg": 0}',
        "videos.json": b'{"results": {"v_1": [0.5, 0.25], "v_2": [1, 0]}, "class": ["run", "jump"]}',
    }


def tables(_: Path) -> Samples:
    made = {}
    for name, save in (("stored", np.savez), ("packed", np.savez_compressed)):
        held = io.BytesIO()
        save(held, frames=np.array(["v/1.jpg", "v/2.jpg"]), scores=np.ones((2, 5), np.float32))
        made[f"{name}.npz"] = held.getvalue()
    return made


def boxes(_: Path) -> Samples:
    held = io.BytesIO()
    np.savez(
        held,
        frames=np.array(["v/1", "v/2"]),
        counts=np.array([1, 2]),
        boxes=np.ones((3, 6)),
        known=np.array(["cup", "dog"]),
    )
    annotation = (
        b"<annotation><folder>v</folder><filename>000001</filename><object><trackid>0</trackid>"
        b"<name>n02084071</name><bndbox><xmax>40</xmax><xmin>1</xmin><ymax>30</ymax><ymin>2</ymin></bndbox>"
        b"</object></annotation>"
    )
    return {
        "true.json": b'{"classes": ["cup", "dog"], "boxes": {"v/1": [[0, 1, 2, 30, 40.5]], "v/2": []}}',
        "found.npz": held.getvalue(),
        "coco.json": b'[{"image_id": 1, "category_id": 18, "bbox": [1, 2, 30, 40.5], "score": 0.5}]',
        "vid.txt": b"1 1 0.8 0 0 40 38\n2 2 0.9 0 0 40 40\n",
        "000001.xml": annotation,
    }


def box_lists(folder: Path) -> None:
    """What goes with files that count frames."""
    coco = '{"images": [{"id": 1, "file_name": "v/1.jpg"}], "categories": [{"id": 18, "name": "dog"}]}'
    (folder / "images.json").write_text(coco)
    (folder / "list.txt").write_text("v/000001 1\nv/000002 2\n")


def features(_: Path) -> Samples:
    made = {}
    for name, array in (
        ("rows", np.ones((9, 6), np.float32)),
        ("columns", np.asfortranarray(np.ones((6, 9), np.float64))),
    ):
        held = io.BytesIO()
        np.save(held, array)
        made[f"{name}.npy"] = held.getvalue()
    return made


def feature_store(_: Path) -> Samples:
    from jostle.features.store import FORMAT

    video = {"file": "v_1.npy", "rows": 9, "frames": 40, "fps": 25.0, "duration": 1.6, "sha256": "0", "source": [1, 2]}
    windows = {"window": 16, "stride": 4, "rule": "inside", "dim": 6}
    about = {
        "format": FORMAT,
        "extractor": "i3d",
        "weights": None,
        "specs": ["fog:3"],
        "videos": {"v_1": video},
        **windows,
    }
    return {"features.json": json.dumps(about).encode()}


def weights(folder: Path) -> Samples:
    import torch

    from jostle.models.checkpoints import write_weights

    network = {"module.a.weight": torch.arange(24.0).reshape(4, 6), "module.b": torch.ones(3, dtype=torch.float16)}
    content = {
        "epoch": 3,
        "state_dict": network,
        "state_dict_ema": network,
        "optimizer": {"lr": 1e-4, "params": [0, 1]},
    }
    made = {}
    for name, modern in (("new", True), ("old", False)):
        torch.save(content, folder / "made.pth", _use_new_zipfile_serialization=modern)
        made[f"{name}.pth"] = (folder / "made.pth").read_bytes()
    write_weights(network, folder / "made.safetensors", metadata={"settings": '{"dim": 4}', "detector": "tridet"})
    return made | {"own.safetensors": (folder / "made.safetensors").read_bytes()}


_RECIPE = b"""name = "small-c"
version = 1
dataset = "puppets"
subset = "test"
task = "detection"
metric = "mean_ap"
protocol = "thumos14"
tious = [0.3, 0.5]
[[groups]]
name = "light"
corruptions = ["imagenet-c/contrast", "gaussian_noise"]
severities = [1, 3, 5]
[[groups]]
name = "one-frame"
cells = ["black_frame:5"]
placements = ["at:50%x1"]
beside = true
"""


_TRAINING = b"""detector = "tridet"
seed = 3
[data]
truth = "t.json"
features = "f"
stride = 4
window = 16
[settings]
dim = 32
classes = 4
[optimiser]
epochs = 3
lr = 1e-4
"""


_RECOGNITION = b"""task = "recognition"
recogniser = "puppet_r2plus1d"
weights = "clean"
[data]
dataset = "puppets-trimmed"
train = "train"
mirror = true
[noise]
std = 0.1
[corruptions]
specs = ["kinetics-c/fog:3"]
share = 1.0
"""


def settings(_: Path) -> Samples:
    return {"recipe.toml": _RECIPE, "training.toml": _TRAINING, "recognition.toml": _RECOGNITION}


def picture() -> np.ndarray:
    ramp = np.mgrid[:24, :32].sum(0) * 4 % 256
    return np.stack([ramp, 255 - ramp, ramp // 2], -1).astype(np.uint8)


def images(_: Path) -> Samples:
    import cv2

    return {
        f"1{ending}": cv2.imencode(ending, picture())[1].tobytes()
        for ending in (".jpg", ".png", ".bmp", ".webp", ".tif")
    }


def image_times(_: Path) -> Samples:
    return {"times.json": b'{"fps": "30000/1001", "time_base": "1/30000", "ticks": [0, 1001]}'}


def one_image(folder: Path) -> None:
    import cv2

    (folder / "1.png").write_bytes(cv2.imencode(".png", picture())[1].tobytes())


def data_sets(_: Path) -> Samples:
    truth = json.dumps(database()).encode()
    return {
        "kinetics400/val.csv": b"label,youtube_id,time_start,time_end,split\nrun,a,1,11,val\njump,b,20,30,val\n",
        "kinetics400/kinetics_val_list.txt": b"a.mp4 1\nb.mp4 0\n",
        "ssv2/validation.json": b'[{"id": "1", "label": "a", "template": "Pushing [something]", "placeholders": []}]',
        "ucf101/testlist01.txt": b"run/v_run_g01_c01.avi\njump/v_jump_g01_c02.avi\n",
        "hmdb51/run_test_split1.txt": b"a.avi 1\nb.avi 2\n",
        "thumos14/thumos14.json": truth,
        "multithumos/multithumos.json": b'{"v_2": {"subset": "testing", "duration": 9, "actions": [[1, 0.5, 2]]}}',
        "activitynet/activity_net.v1-3.min.json": truth,
        "imagenet-vid-robust/pmsets.json": b'{"val/v/1.jpg": ["val/v/2.jpg"]}',
        "epic-kitchens-verbs/EPIC_100_validation.csv": b"video_id,start_timestamp,stop_timestamp,verb_class\n"
        b"v_2,00:00:01.5,00:01:02,3\nv_2,00:00:02,00:00:03,3\n",
        "charades/Charades_v1_test.csv": b"id,actions,length\nv_2,c092 11.90 21.20;c147 0.00 12.60,24.83\n",
        "ego4d-moments/moments_val.json": b'{"videos": [{"video_uid": "u", "split": "val", "clips": [{"clip_uid": '
        b'"v_2", "video_start_sec": 1, "video_end_sec": 9.5, "annotations": [{"labels": [{"primary": true, '
        b'"label": "wash", "start_time": 1.5, "end_time": 2}]}]}]}]}',
        "egtea/test_split1.txt": b"a-1-2-F1-F2 1 1 1\nb-1-2-F1-F2 2 2 3 4\n",
        "diving48/Diving48_V2_test.json": b'[{"vid_name": "v_2", "label": 1, "start_frame": 0, "end_frame": 9}]',
        "jester/jester-v1-validation.csv": b"1;Stop Sign\n2;Drumming Fingers\n",
        "moments-in-time/validationSet.csv": b"run/a.mp4,run,3,0\njump/b.mp4,jump,2,1\n",
        "ucf101-ds/ucf101-DS_eval.csv": b"filename,label\nx.mp4,BilliardsShot\ny.mp4,Diving\n",
    }


def some_clips(folder: Path) -> None:
    clips = {
        "kinetics400": ("a_000001_000011.mp4", "a.mp4", "b.mp4"),
        "ssv2": ("1.webm",),
        "ucf101": ("run/v_run_g01_c01.avi", "jump/v_jump_g01_c02.avi"),
        "hmdb51": ("run/a.avi", "run/b.avi"),
        "imagenet-vid-robust": ("val/v/1.jpg", "val/v/2.jpg"),
        **dict.fromkeys(("thumos14", "multithumos", "activitynet"), ("v_-abc.mp4", "v_2.mp4")),
        **dict.fromkeys(("epic-kitchens-verbs", "charades", "ego4d-moments", "diving48"), ("v_2.mp4",)),
        "egtea": ("a-1-2-F1-F2.mp4",),
        "jester": ("1/00001.jpg", "1/00002.jpg"),
        "moments-in-time": ("run/a.mp4", "jump/b.mp4"),
        "ucf101-ds": ("BilliardsShot/x.mp4", "Diving/y.mp4"),
    }
    for name, files in clips.items():
        for file in files:
            (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / file).write_bytes(b"x")
    (folder / "imagenet-vid-robust" / "labels.json").write_bytes(b'{"val/v/1.jpg": [0], "val/v/2.jpg": [1]}')


def out_folder(folder: Path) -> None:
    (folder / "out").mkdir()


_FILMED = (
    *(("a.webm", "libvpx-vp9", ""), ("a.mpg", "mpeg2video", ""), ("c.avi", "mjpeg", ""), ("a.ts", "mpeg4", "")),
    *(("sound.mp4", "libx264", "aac"), ("sound.avi", "mpeg4", "pcm_s16le")),
)


def videos(folder: Path) -> Samples:
    """Every codec and container that jostle writes, and some that others do."""
    from jostle.io.video.encode import Writer

    made = {}
    shots = [np.roll(np.kron(picture(), np.ones((2, 2, 1), np.uint8)), 5 * t, 1) for t in range(12)]
    for name, codec in (
        *(("a.mp4", "h264"), ("b.mp4", "h265"), ("a.mkv", "h264"), ("b.mkv", "h265"), ("c.mkv", "ffv1")),
        *(("a.mov", "h264"), ("a.avi", "h264"), ("b.avi", "ffv1")),
    ):
        with Writer(folder / name, size=(48, 64), fps=25, codec=codec, faststart=name == "a.mov") as writer:  # type: ignore[arg-type]
            for shot in shots:
                writer.write(shot)
        made[name] = (folder / name).read_bytes()
    for name, encoder, sound in _FILMED:
        film(folder / name, encoder, sound, shots)
        made[name] = (folder / name).read_bytes()
    return made


def film(path: Path, encoder: str, sound: str, shots: list[np.ndarray]) -> None:
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream(encoder, rate=25)
        stream.width, stream.height = 64, 48
        stream.pix_fmt = "yuvj420p" if encoder == "mjpeg" else "yuv420p"
        stream.codec_context.thread_count = 1
        heard = container.add_stream(sound, rate=8000, layout="mono") if sound else None
        for shot in shots:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(shot)))
        container.mux(stream.encode(None))
        if heard is not None:
            wave = av.AudioFrame.from_ndarray(np.zeros((1, 3840), np.int16), format="s16", layout="mono")
            wave.sample_rate = 8000
            container.mux(heard.encode(wave))
            container.mux(heard.encode(None))


def runs(folder: Path) -> Samples:
    """A finished run of each task; the whole of them lies beside each file."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "findings"))
    from helpers.synthetic_runs import write_run

    made = folder / "runs"
    made.mkdir()
    for task in ("detection", "recognition", "frames"):
        write_run(made / task, task, videos=4, cells=("thumos14-c/black_frame:1",))
    files = [path for path in made.rglob("*") if path.is_file() and path.stat().st_size and path.suffix != ".mp4"]
    return {path.relative_to(made).as_posix(): path.read_bytes() for path in files}


def whole_runs(place: Path) -> None:
    shutil.copytree(place.parent / "runs", place, dirs_exist_ok=True)
